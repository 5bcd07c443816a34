// Questions to the API. Knows paths, the token and errors; knows nothing of what answers mean.

const TOKEN = "stream_dedup.token";
const SECONDS = 15;

/** An answer that is none: its status and what the API says of it. */
export class Unanswered extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

/** Keep the token as long as this tab is open. */
export function keepToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

/**
 * Ask the API.
 * @param {string} path - behind /v1/.
 * @param {object} asked - parameters; empty ones are left out.
 * @param {object|null} body - sent as JSON, by POST.
 * @throws {Unanswered} status 0 where nobody answers.
 */
export async function ask(path, asked = {}, body = null) {
  const parameters = new URLSearchParams(Object.entries(asked).filter(([, value]) => value !== "" && value != null));
  const token = sessionStorage.getItem(TOKEN);
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
  if (!response.ok) throw new Unanswered(response.status, detailOf(answer, response));
  return answer;
}

function detailOf(answer, response) {
  if (typeof answer.detail === "string") return answer.detail;
  if (Array.isArray(answer.detail)) return answer.detail.map((one) => `${one.loc?.at(-1)}: ${one.msg}`).join("; ");
  return `${response.status} ${response.statusText}`;
}
