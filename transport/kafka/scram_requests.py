"""AlterUserScramCredentials of Kafka's clients, judged as Kafka does and in its words.

All changes of a user are made together, or none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from transport.errors import ApiError, ErrorCode, Fault
from transport.kafka import messages as kafka
from transport.kafka.messages.alter_user_scram_credentials_request import ScramCredentialUpsertion
from transport.kafka.messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResult
from transport.messages.users import UserChanges
from transport.security.scram import MECHANISMS, MIN_ITERATIONS, credential_of
from transport.store.scram_users import MAX_NAME, NO_NODES, encode_credential

_NAMES: Final[Mapping[int, str]] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_MOST_ITERATIONS: Final = 16_384

_EMPTY: Final = ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
_NO_NAME: Final = ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be '.' or '..', or longer than 1000 characters"
_UNKNOWN: Final = ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
_TOO_FEW: Final = ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"
_TOO_MANY: Final = ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"
_TWICE: Final = ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"


def judge_users(
    request: kafka.AlterUserScramCredentialsRequest,
) -> tuple[dict[str, Fault], tuple[UserChanges, ...]]:
    """Return the users whose changes are refused, and the changes of all others."""
    asked = _asked(request)
    judged = [(user, _fault(user, mechanism, iterations)) for user, mechanism, iterations in asked]
    faults = {user: fault for user, fault in judged if fault is not None}
    counts = Counter((user, mechanism) for user, mechanism, _ in asked)
    faults |= {user: _TWICE for (user, _), count in counts.items() if count > 1 and user not in faults}
    removed = defaultdict[str, list[str]](list)
    for deletion in request.deletions:
        removed[deletion.name].append(_NAMES.get(deletion.mechanism, ""))
    added = defaultdict[str, list[tuple[str, str]]](list)
    for row in request.upsertions:
        if row.name not in faults:
            added[row.name].append(_setting(row))
    users = dict.fromkeys(user for user, *_ in asked if user not in faults)
    return faults, tuple(UserChanges(user, tuple(removed[user]), tuple(added[user])) for user in users)


def _asked(request: kafka.AlterUserScramCredentialsRequest) -> list[tuple[str, int, int | None]]:
    """Return the user, the mechanism and, unless it is to be removed, the iterations of each credential."""
    removed = [(row.name, row.mechanism, None) for row in request.deletions]
    return [*removed, *((row.name, row.mechanism, row.iterations) for row in request.upsertions)]


def _fault(user: str, mechanism: int, iterations: int | None) -> Fault | None:
    if not user:
        return _EMPTY
    if user in NO_NODES or len(user) > MAX_NAME:
        return _NO_NAME
    if mechanism not in _NAMES:
        return _UNKNOWN
    if iterations is None or MIN_ITERATIONS <= iterations <= _MOST_ITERATIONS:
        return None
    return _TOO_MANY if iterations > _MOST_ITERATIONS else _TOO_FEW


def _setting(row: ScramCredentialUpsertion) -> tuple[str, str]:
    """Return a new credential as a user's setting."""
    name = _NAMES[row.mechanism]
    credential = credential_of(MECHANISMS[name], row.salted_password, row.salt, row.iterations)
    return name, encode_credential(credential)


def alter_users_answer(
    request: kafka.AlterUserScramCredentialsRequest, outcomes: Mapping[str, Fault | None] | ApiError
) -> kafka.AlterUserScramCredentialsResponse:
    """Return the outcome of each user once."""
    users = dict.fromkeys(user for user, *_ in _asked(request))
    results = []
    for user in users:
        if isinstance(outcomes, ApiError):
            results.append(AlterUserScramCredentialsResult(user, outcomes.code, outcomes.message or None))
            continue
        code, text = outcomes[user] or (ErrorCode.NONE, "")
        results.append(AlterUserScramCredentialsResult(user, code, text))
    return kafka.AlterUserScramCredentialsResponse(results=tuple(results))
