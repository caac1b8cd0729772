"""The texts that a user may see, by message code and language. `user_text` decides which one fits.

Each text says whether something was done, and never quotes a provider, an argument or an error of a tool. ``{tool}``
is replaced by the tool's name; a text may omit it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, auto

FALLBACK = "en"


class MessageCode(StrEnum):
    """The messages for users. The values are stable: programs may store them instead of a text."""

    CALL_SUCCEEDED = auto()
    CALL_FAILED = auto()
    CALL_UNKNOWN = auto()
    CALL_UNCONFIRMED = auto()
    CALL_NOT_RUN = auto()
    CALL_INVALID = auto()
    CALL_REFUSED = auto()
    CALL_DENIED = auto()
    CALL_CANCELLED = auto()
    CALL_EXPIRED = auto()
    CALL_CONFLICT = auto()
    CALL_RUNNING = auto()
    CALL_WAITING = auto()
    CALL_NEEDS_APPROVAL = auto()
    TURN_TRUNCATED = auto()
    TURN_FILTERED = auto()
    TURN_ABORTED = auto()
    TURN_UNUSABLE = auto()
    TURN_PAUSED = auto()
    PROVIDER_BUSY = auto()
    PROVIDER_FAILED = auto()
    PROVIDER_UNREACHABLE = auto()
    PROVIDER_REFUSED = auto()
    STILL_RUNNING = auto()
    WAIT_CANCELLED = auto()


_C = MessageCode

_ENGLISH = {
    _C.CALL_SUCCEEDED: "“{tool}” is done.",
    _C.CALL_FAILED: "“{tool}” did not succeed.",
    _C.CALL_UNKNOWN: (
        "“{tool}” was started, but we could not confirm whether it took effect. "
        "It will not be repeated by itself. Please check before you ask for it again."
    ),
    _C.CALL_UNCONFIRMED: (
        "We could not confirm whether “{tool}” was carried out. "
        "It will not be repeated by itself. Please check before you ask for it again."
    ),
    _C.CALL_INVALID: "The assistant asked for “{tool}” in a way that could not be used. Nothing was done.",
    _C.CALL_NOT_RUN: "“{tool}” could not be carried out. Nothing was done.",
    _C.CALL_REFUSED: "“{tool}” was refused. Nothing was done.",
    _C.CALL_DENIED: "“{tool}” was not approved. Nothing was done.",
    _C.CALL_CANCELLED: "“{tool}” was cancelled before it started. Nothing was done.",
    _C.CALL_EXPIRED: "“{tool}” could not start in time. Nothing was done.",
    _C.CALL_CONFLICT: (
        "“{tool}” contradicts an earlier request with the same identity and was not carried out. "
        "Only the earlier one counts."
    ),
    _C.CALL_RUNNING: "“{tool}” is still running.",
    _C.CALL_WAITING: "“{tool}” is waiting to start.",
    _C.CALL_NEEDS_APPROVAL: "“{tool}” is waiting for approval.",
    _C.TURN_TRUNCATED: "The assistant's answer broke off. No action of it was carried out. Please try again.",
    _C.TURN_FILTERED: "The assistant declined this answer. No action of it was carried out.",
    _C.TURN_ABORTED: "The assistant's answer was interrupted. No action of it was carried out. Please try again.",
    _C.TURN_UNUSABLE: "The assistant's answer could not be used. No action of it was carried out. Please try again.",
    _C.TURN_PAUSED: "The assistant paused and will go on with its answer.",
    _C.PROVIDER_BUSY: "The assistant is overloaded right now. No action was carried out. Please try again in a moment.",
    _C.PROVIDER_FAILED: "The assistant has a technical problem. No action was carried out. Please try again later.",
    _C.PROVIDER_UNREACHABLE: (
        "The assistant cannot be reached. No action was carried out. Please check the connection and try again."
    ),
    _C.PROVIDER_REFUSED: "The request to the assistant was refused. No action was carried out.",
    _C.STILL_RUNNING: "Your request is still being worked on. It goes on by itself; you can come back to it later.",
    _C.WAIT_CANCELLED: "You stopped waiting. What had already started goes on by itself.",
}

_SPANISH = {
    _C.CALL_SUCCEEDED: "«{tool}» se ha completado.",
    _C.CALL_FAILED: "«{tool}» no se ha podido completar.",
    _C.CALL_UNKNOWN: (
        "«{tool}» se inició, pero no hemos podido confirmar si tuvo efecto. "
        "No se repetirá automáticamente. Compruébelo antes de volver a pedirlo."
    ),
    _C.CALL_UNCONFIRMED: (
        "No hemos podido confirmar si «{tool}» se llevó a cabo. "
        "No se repetirá automáticamente. Compruébelo antes de volver a pedirlo."
    ),
    _C.CALL_INVALID: "El asistente solicitó «{tool}» de una forma que no se puede utilizar. No se ha hecho nada.",
    _C.CALL_NOT_RUN: "«{tool}» no se ha podido llevar a cabo. No se ha hecho nada.",
    _C.CALL_REFUSED: "«{tool}» ha sido rechazado. No se ha hecho nada.",
    _C.CALL_DENIED: "«{tool}» no ha sido aprobado. No se ha hecho nada.",
    _C.CALL_CANCELLED: "«{tool}» se canceló antes de empezar. No se ha hecho nada.",
    _C.CALL_EXPIRED: "«{tool}» no pudo empezar a tiempo. No se ha hecho nada.",
    _C.CALL_CONFLICT: (
        "«{tool}» contradice una petición anterior con la misma identidad y no se ha llevado a cabo. "
        "Solo cuenta la anterior."
    ),
    _C.CALL_RUNNING: "«{tool}» sigue en curso.",
    _C.CALL_WAITING: "«{tool}» está esperando para empezar.",
    _C.CALL_NEEDS_APPROVAL: "«{tool}» está pendiente de aprobación.",
    _C.TURN_TRUNCATED: (
        "La respuesta del asistente quedó cortada. No se ha ejecutado ninguna de sus acciones. Inténtelo de nuevo."
    ),
    _C.TURN_FILTERED: "El asistente ha rechazado dar esta respuesta. No se ha ejecutado ninguna de sus acciones.",
    _C.TURN_ABORTED: (
        "La respuesta del asistente se interrumpió. No se ha ejecutado ninguna de sus acciones. Inténtelo de nuevo."
    ),
    _C.TURN_UNUSABLE: (
        "La respuesta del asistente no se puede utilizar. "
        "No se ha ejecutado ninguna de sus acciones. Inténtelo de nuevo."
    ),
    _C.TURN_PAUSED: "El asistente ha hecho una pausa y continuará con su respuesta.",
    _C.PROVIDER_BUSY: (
        "El asistente está saturado en este momento. "
        "No se ha ejecutado ninguna acción. Inténtelo de nuevo en unos instantes."
    ),
    _C.PROVIDER_FAILED: (
        "El asistente tiene un problema técnico. No se ha ejecutado ninguna acción. Inténtelo de nuevo más tarde."
    ),
    _C.PROVIDER_UNREACHABLE: (
        "No se puede contactar con el asistente. "
        "No se ha ejecutado ninguna acción. Compruebe la conexión e inténtelo de nuevo."
    ),
    _C.PROVIDER_REFUSED: "La petición al asistente ha sido rechazada. No se ha ejecutado ninguna acción.",
    _C.STILL_RUNNING: "Su petición sigue en curso. Continúa por sí sola; puede volver a consultarla más tarde.",
    _C.WAIT_CANCELLED: "Ha dejado de esperar. Lo que ya había empezado continúa por sí solo.",
}

_DUTCH = {
    _C.CALL_SUCCEEDED: "“{tool}” is klaar.",
    _C.CALL_FAILED: "“{tool}” is niet gelukt.",
    _C.CALL_UNKNOWN: (
        "“{tool}” is gestart, maar we konden niet vaststellen of het is uitgevoerd. "
        "Het wordt niet vanzelf herhaald. Controleer dit voordat u er opnieuw om vraagt."
    ),
    _C.CALL_UNCONFIRMED: (
        "We konden niet vaststellen of “{tool}” is uitgevoerd. "
        "Het wordt niet vanzelf herhaald. Controleer dit voordat u er opnieuw om vraagt."
    ),
    _C.CALL_INVALID: "De assistent vroeg om “{tool}” op een manier die niet bruikbaar was. Er is niets gedaan.",
    _C.CALL_NOT_RUN: "“{tool}” kon niet worden uitgevoerd. Er is niets gedaan.",
    _C.CALL_REFUSED: "“{tool}” is geweigerd. Er is niets gedaan.",
    _C.CALL_DENIED: "“{tool}” is niet goedgekeurd. Er is niets gedaan.",
    _C.CALL_CANCELLED: "“{tool}” is geannuleerd voordat het begon. Er is niets gedaan.",
    _C.CALL_EXPIRED: "“{tool}” kon niet op tijd beginnen. Er is niets gedaan.",
    _C.CALL_CONFLICT: (
        "“{tool}” is in strijd met een eerder verzoek met dezelfde identiteit en is niet uitgevoerd. "
        "Alleen het eerdere telt."
    ),
    _C.CALL_RUNNING: "“{tool}” is nog bezig.",
    _C.CALL_WAITING: "“{tool}” wacht tot het kan beginnen.",
    _C.CALL_NEEDS_APPROVAL: "“{tool}” wacht op goedkeuring.",
    _C.TURN_TRUNCATED: (
        "Het antwoord van de assistent brak af. Geen enkele actie eruit is uitgevoerd. Probeer het opnieuw."
    ),
    _C.TURN_FILTERED: "De assistent heeft dit antwoord geweigerd. Geen enkele actie eruit is uitgevoerd.",
    _C.TURN_ABORTED: (
        "Het antwoord van de assistent werd onderbroken. Geen enkele actie eruit is uitgevoerd. Probeer het opnieuw."
    ),
    _C.TURN_UNUSABLE: (
        "Het antwoord van de assistent was niet bruikbaar. Geen enkele actie eruit is uitgevoerd. Probeer het opnieuw."
    ),
    _C.TURN_PAUSED: "De assistent pauzeert even en gaat daarna verder met het antwoord.",
    _C.PROVIDER_BUSY: "De assistent is nu overbelast. Er is niets uitgevoerd. Probeer het over een ogenblik opnieuw.",
    _C.PROVIDER_FAILED: (
        "De assistent heeft een technisch probleem. Er is niets uitgevoerd. Probeer het later opnieuw."
    ),
    _C.PROVIDER_UNREACHABLE: (
        "De assistent is niet bereikbaar. Er is niets uitgevoerd. Controleer de verbinding en probeer het opnieuw."
    ),
    _C.PROVIDER_REFUSED: "Het verzoek aan de assistent is geweigerd. Er is niets uitgevoerd.",
    _C.STILL_RUNNING: "Er wordt nog aan uw verzoek gewerkt. Het gaat vanzelf verder; u kunt er later op terugkomen.",
    _C.WAIT_CANCELLED: "U bent gestopt met wachten. Wat al begonnen was, gaat vanzelf verder.",
}


@dataclass(frozen=True, slots=True)
class Translations:
    """Texts by language and message code. Immutable."""

    texts: Mapping[str, Mapping[MessageCode, str]]

    def text(self, code: MessageCode, locale: str = FALLBACK, *, tool: str = "") -> str:
        """The text in the nearest language: for ``nl_BE`` and ``nl-BE`` that one, then ``nl``, then English."""
        spoken = locale.replace("_", "-").lower()
        for language in (spoken, spoken.split("-")[0], FALLBACK):
            if text := self.texts.get(language, {}).get(code):
                return text.replace("{tool}", tool)
        raise KeyError(code)

    def replacing(self, locale: str, texts: Mapping[MessageCode, str]) -> Translations:
        """A copy in which these texts replace those of this language; all other texts stay."""
        language = locale.replace("_", "-").lower()
        return Translations({**self.texts, language: {**self.texts.get(language, {}), **texts}})


TRANSLATIONS = Translations({"en": _ENGLISH, "es": _SPANISH, "nl": _DUTCH})
