// Requests to the API. Knows paths, the token and errors; knows nothing of what answers mean.

const TOKEN = "stream_dedup.token";
const SECONDS = 15;

/** A failed request: its status and the API's explanation, in words and as a code. */
export class Unanswered extends Error {
  constructor(status, detail, code = "") {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** Keep the token as long as this tab is open. */
export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

/** Return whether there is a token, right or wrong. */
export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

/**
 * Ask the API.
 * @param {string} path - after /v1/.
 * @param {object} asked - parameters; empty ones are left out.
 * @param {object|null} body - sent as JSON, by POST.
 * @throws {Unanswered} with status 0 if nothing answers.
 */
export async function ask(path, asked = {}, body = null) {
  const parameters = new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== "" && value != null));
  const token = inHeader(sessionStorage.getItem(TOKEN) ?? "");
  let response;
  try {
    response = await fetch(`/v1/${path}?${parameters}`, {
      method: body ? "POST" : "GET",
      headers: { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...(body ? { "Content-Type": "application/json" } : {}) },
      body: body ? JSON.stringify(body) : null,
      signal: AbortSignal.timeout(1000 * SECONDS),
    });
  } catch (error) {
    throw new Unanswered(0, error.message);
  }
  const answer = await response.json().catch(() => ({}));
  // An answer that did not come from the API itself may not be JSON.
  if (!response.ok) throw new Unanswered(response.status, answer.detail ?? `${response.status} ${response.statusText}`, answer.code);
  return answer;
}

/** Return a text with its UTF-8 bytes as characters: a header may hold no others. */
function inHeader(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}
