"""`/admin/delete_topics`: the topics that administrators have marked for deletion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controller.model.context import ControllerContext
from controller.model.facts import MarkersKept
from controller.model.faults import unknown_topic
from controller.model.rounds import Rounds, Step, apply, children, commit_each, existing, until_none_is_left
from transport.errors import ErrorCode
from transport.log import get_logger
from transport.messages import DeleteTopicsResponse, TopicError
from transport.store import paths
from transport.store.protocol import FORBIDDEN, Create, Delete

log = get_logger(__name__)


def delete_topics(context: ControllerContext, names: Sequence[str]) -> Rounds[DeleteTopicsResponse]:
    """Mark topics for deletion; the watch on the list of markers then begins it. Marking is idempotent."""
    errors = {name: _refusal(context, name) for name in names}
    wanted = [name for name, error in errors.items() if error is None and name not in context.deletions]
    text = "the marker of its deletion cannot be written: see the controller's log"

    def mark(pending: list[str]) -> Rounds[list[str]]:
        rejected = list[str]()
        steps = {name: Step(writes=(Create(paths.delete_topic(name)),)) for name in pending}
        stale = yield from commit_each("mark", steps, on_rejected=rejected.extend)
        errors.update((name, TopicError(name, ErrorCode.OPERATION_NOT_ATTEMPTED, text)) for name in rejected)
        # A marker exists already. That is as good, unless it is not heeded.
        kept, again = yield from _replace_unheeded(context, stale)
        errors.update((name, _stays(name)) for name in kept)
        return again

    yield from until_none_is_left("mark", wanted, mark)
    return DeleteTopicsResponse(tuple(error or TopicError(name) for name, error in errors.items()))


def _replace_unheeded(context: ControllerContext, names: Sequence[str]) -> Rounds[tuple[list[str], list[str]]]:
    """Replace markers that `read_marked` would not heed by new ones; return those that stay, and those that changed."""
    earlier, unclear = yield from _of_earlier_topics(context, names)
    kept = list[str]()
    steps = {}
    for name in (*earlier, *unclear):
        path = paths.delete_topic(name)
        # In whatever way the marker has changed, it is no newer than the one that takes its place.
        steps[name] = Step(writes=(Delete(path), Create(path)))
    changed = yield from commit_each("mark", steps, on_rejected=kept.extend)
    return kept, changed


def _stays(name: str) -> TopicError:
    text = f"a marker that an earlier topic left stays, and deletes no later one: delete {paths.delete_topic(name)}"
    return TopicError(name, ErrorCode.OPERATION_NOT_ATTEMPTED, f"{text}, and ask again")


def _refusal(context: ControllerContext, name: str) -> TopicError | None:
    if not context.config.delete_topic_enable:
        text = "topics cannot be deleted: the controller runs with delete.topic.enable=false"
        return TopicError(name, ErrorCode.TOPIC_DELETION_DISABLED, text)
    if name not in context.topics:
        return TopicError(name, *unknown_topic(name))
    return None


def read_marked(context: ControllerContext) -> Rounds[list[str]]:
    """Return the known topics that are marked, and watch for more.

    Markers of topics that do not exist or are newer are removed, and all markers if deletion is disabled. A marker that
    an ACL keeps from being removed deletes no later topic of its name.
    """
    names = yield from children(paths.DELETE_TOPICS, watch=True)
    if not context.config.delete_topic_enable:
        for name in names:
            log.warning("a topic is not deleted: delete.topic.enable is false", topic=name)
        yield from _keep(context, (yield from remove(names)))
        return []
    unknown = [name for name in names if name not in context.topics]
    there = yield from existing(paths.topic, unknown)
    for name in there:
        log.warning("a topic is not deleted yet: it was just created, or its znode must be repaired first", topic=name)
    earlier, unclear = yield from _of_earlier_topics(context, [name for name in names if name in context.topics])
    for name in unclear:
        log.warning("a topic is not deleted yet: an ACL hides whether its marker is older", topic=name)
    for name in earlier:
        log.warning("a topic is not deleted: its marker is older, and was that of an earlier topic", topic=name)
    kept = yield from remove([*(name for name in unknown if name not in there), *earlier])
    yield from _keep(context, [*kept, *unclear], early=there)
    return [name for name in names if name in context.topics and name not in {*earlier, *unclear}]


def _of_earlier_topics(context: ControllerContext, names: Sequence[str]) -> Rounds[tuple[list[str], list[str]]]:
    """Return the topics that were created after their marker, and those of which an ACL hides it.

    Kafka's controller deletes a topic before its marker, and may lose its office in between. A marker that an ACL keeps
    us from removing outlives its topic as well.
    """
    new = [name for name in names if name not in context.deletions]
    if not new:
        return [], []
    markers = yield from existing(paths.delete_topic, new)
    topics = yield from existing(paths.topic, new)
    both = [name for name in markers if name in topics]
    unclear = [name for name in both if markers[name] == FORBIDDEN]
    ages = {name: (markers[name].stat.czxid, topics[name].stat.czxid) for name in both if name not in unclear}
    # A topic that is closed, and known from before, has no age.
    return [name for name, (marker, topic) in ages.items() if marker < topic], unclear


def _keep(context: ControllerContext, names: Iterable[str], early: Iterable[str] = ()) -> Rounds[None]:
    """Remember the markers that stay, to try them again: nothing else happens when their ACL changes.

    The `early` ones are read again once their topics are loaded.
    """
    kept = MarkersKept(frozenset(names), frozenset(early))
    is_news = (kept.names, kept.early) != (context.closed.markers, context.closed.early_markers)
    yield from apply("mark", [Step(facts=(kept,))] if is_news else [])


def remove(names: Sequence[str]) -> Rounds[list[str]]:
    """Remove the markers of topics; missing ones are ignored. Return those that an ACL keeps."""
    there = yield from existing(paths.delete_topic, names)
    deletes = {name: Step(writes=(Delete(paths.delete_topic(name)),)) for name in there}
    kept = list[str]()
    yield from commit_each("mark", deletes, on_rejected=kept.extend)
    for name in kept:
        text = "a marker cannot be removed: no topic that is newer is deleted because of it, delete its znode"
        log.error(text, topic=name, path=paths.delete_topic(name))
    return kept
