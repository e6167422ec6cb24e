"""What clients may send and what they get, checked by msgspec while it is decoded."""

from typing import Annotated, Literal

import msgspec

# An id as text or as a whole number; text ids may be long, but not without end.
Id = (
    Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    | Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
)
Key = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class RecommendBody(msgspec.Struct, forbid_unknown_fields=True):
    """POST /recommend."""

    user: Id
    k: Annotated[int, msgspec.Meta(ge=1)] = 10
    history: list[Id] | None = None  # oldest first; in place of what the training data have
    candidates: list[Id] | None = None  # show nothing else
    exclude: list[Id] = []


class SimilarBody(msgspec.Struct, forbid_unknown_fields=True):
    """POST /similar."""

    item: Id
    k: Annotated[int, msgspec.Meta(ge=1)] = 10
    user: Id | None = None  # decides on the arm; without one, the arm is drawn
    candidates: list[Id] | None = None
    exclude: list[Id] = []


class Outcome(msgspec.Struct, forbid_unknown_fields=True):
    """POST /outcomes: one of these, or an array of them."""

    event_id: Id
    request_id: Key
    item: Id
    kind: Literal["click", "order"]
    units: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None  # of an order: 1 if it does not say
    value: Annotated[float, msgspec.Meta(ge=0, le=1e12)] | None = None  # of an order: 0 if it does not say


class SwapBody(msgspec.Struct, forbid_unknown_fields=True):
    """POST /admin/models."""

    arm: str
    run: str  # the folder of a run or of an artifact, on the machine of the server


class Slot(msgspec.Struct):
    """One item of an answer."""

    id: str | int
    score: float
    position: int
    propensity: float


class Answer(msgspec.Struct):
    """What /recommend and /similar give."""

    request_id: str
    arm: str
    model_version: str
    items: list[Slot]
    fallback: bool


class Refused(Exception):  # noqa: N818  # the client's mistake, not ours
    """A request that gets a status of 4xx or 503, and one sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


RECOMMEND = msgspec.json.Decoder(RecommendBody)
SIMILAR = msgspec.json.Decoder(SimilarBody)
OUTCOMES = msgspec.json.Decoder(Outcome | list[Outcome])
SWAP = msgspec.json.Decoder(SwapBody)
ENCODER = msgspec.json.Encoder()


def text_of(one: str | int) -> str:
    """An id as the log has it."""
    text = one if isinstance(one, str) else str(one)
    if "\0" in text:  # which PostgreSQL cannot store
        raise Refused(400, "Ids must not hold a character of code 0; send them without it.")
    return text


def texts_of(ids: list[str | int] | None) -> list[str]:
    """Several ids."""
    return [text_of(one) for one in ids or ()]
