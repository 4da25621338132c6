# SPDX-License-Identifier: Apache-2.0
"""The run's spans counted as they pass, in the shape the summary draws: a tree of names, not of spans.

A span's place is below its parent's. A step starts a trace of its own and links to the span that enclosed it; here the
link is followed, so steps lie under their job. A parent that is not known yet (its rule does not announce, or another
process's journal is read later) gets a stand-in whose counts move over when it shows up.
"""

from __future__ import annotations

from lens_auto.collect.distribution import Distribution
from lens_auto.collect.intervals import Cover

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Mapping
    from typing import Any

    Links = tuple[tuple[bytes, bytes, Mapping[str, Any] | None], ...]
else:
    from _collections import OrderedDict  # without the package around it, which takes a millisecond

_MOST_NODES = 2000
_MOST_REMEMBERED = 50_000
_MOST_STRANGERS = 10_000
_MOST_CELLS = 100_000  # names x processes
_MOST_COVERS = 4096
_CHECKPOINTED_PLACES = 1000
OTHERS = '(other names)'
STEP_GROUP = 'step'


class Node:
    """All spans of one name under one parent's name.

    Attributes:
        name: The name they share.
        durations: Their durations in nanoseconds.
        errors: How many ended in an error.
        truncated: How many were cut short by the end of their process.
        bucket: Goodput bucket of their group, ''.
        group: Their span group, ''.
        linked: Whether they hang here by a link rather than as children.
        idle: Nanoseconds of them that no child covers, where that was watched (steps).
        watched: Nanoseconds of them in all, where that was watched.
        processes: Label -> [count, nanoseconds].
        children: Name -> node.
    """

    __slots__ = (
        'bucket',
        'children',
        'durations',
        'errors',
        'group',
        'idle',
        'linked',
        'moved',
        'name',
        'processes',
        'truncated',
        'watched',
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.durations = Distribution()
        self.errors = 0
        self.truncated = 0
        self.bucket = ''
        self.group = ''
        self.linked = False
        self.idle = 0
        self.watched = 0
        self.processes: dict[str, list[int]] = {}
        self.children: dict[str, Node] = {}
        self.moved: Node | None = None

    def here(self) -> Node:
        """This node, or the one its counts have moved to."""
        node = self
        while node.moved is not None:
            node = node.moved
        if node is not self:
            self.moved = node
        return node

    def take(self, other: Node) -> int:
        """Add another node's counts and children to this one's; the answer is how many nodes that did away with.

        Args:
            other: Forwards to this one from now on.
        """
        gone = 0
        # No recursion: traced recursive functions make trees as deep as they are.
        work: list[tuple[Node, Node]] = [(self, other)]
        while work:
            mine, theirs = work.pop()
            mine._add(theirs)
            gone += 1
            for name, child in theirs.children.items():
                if name == mine.name:
                    work.append((mine, child))
                elif name in mine.children:
                    work.append((mine.children[name], child))
                else:
                    mine.children[name] = child
            theirs.moved = mine
        return gone

    def holds(self, other: Node) -> bool:
        """Whether a node is this one or below it.

        Args:
            other: The node.
        """
        work: list[Node] = [self]
        while work:
            node = work.pop()
            if node is other:
                return True
            work.extend(node.children.values())
        return False

    def _add(self, other: Node) -> None:
        self.durations.merge(other.durations)
        self.errors += other.errors
        self.truncated += other.truncated
        self.bucket = self.bucket or other.bucket
        self.group = self.group or other.group
        self.linked = self.linked or other.linked
        self.idle += other.idle
        self.watched += other.watched
        for label, (count, spent) in other.processes.items():
            mine = self.processes.setdefault(label, [0, 0])
            mine[0] += count
            mine[1] += spent


class Place:
    """Where one span hangs.

    Attributes:
        node: Its name's node.
        up: Id of the span it is drawn under, b'' for none.
        step: Id of the step it lies in, b'' for none.
        is_step: Whether it is a step itself.
        open: Whether it has not ended.
    """

    __slots__ = ('is_step', 'node', 'open', 'step', 'up')

    def __init__(self, node: Node, up: bytes, step: bytes, is_step: bool, open: bool = True) -> None:
        self.node = node
        self.up = up
        self.step = step
        self.is_step = is_step
        self.open = open


class Tally:
    """The tree of names, and what is needed to find a span's place in it."""

    def __init__(self, run_root: bytes) -> None:
        """Begin with nothing.

        Args:
            run_root: Id of the run's root span: a parent that is not drawn.
        """
        self.root = Node('')
        self._run_root = run_root
        self._nodes = 0
        self._cells = 0
        # By age. Not a dict: finding the first key of one that lost many is linear in the losses.
        self._places: OrderedDict[bytes, Place] = OrderedDict()
        self._strangers: dict[bytes, Node] = {}  # parents not seen yet
        self._covers: dict[bytes, Cover] = {}  # steps in flight

    def opened(
        self,
        span_id: bytes,
        parent_id: bytes,
        name: str,
        items: Mapping[str, Any] | None,
        links: Links | None,
        start: int,
    ) -> None:
        """Take note of a span that began.

        Args:
            span_id: Its id.
            parent_id: Its parent, b'' for none.
            name: Its name.
            items: Attributes read so far.
            links: Its links.
            start: Monotonic nanoseconds.
        """
        place = self._place(span_id, parent_id, name, items, links)
        if place.is_step and len(self._covers) < _MOST_COVERS:
            self._covers[span_id] = Cover(start)

    def ended(
        self,
        span_id: bytes,
        parent_id: bytes,
        name: str,
        items: Mapping[str, Any] | None,
        links: Links | None,
        start: int,
        duration: int,
        process: str,
        error: bool,
        truncated: bool = False,
    ) -> None:
        """Count a span that ended.

        Args:
            span_id: Its id.
            parent_id: Its parent, b'' for none.
            name: Its name.
            items: Its attributes.
            links: Its links.
            start: Monotonic nanoseconds.
            duration: Nanoseconds.
            process: Label of its process.
            error: Whether it failed.
            truncated: Whether its process ended before it did.
        """
        place = self._places.get(span_id) or self._place(span_id, parent_id, name, items, links)
        place.open = False
        node = place.node.here()
        node.durations.add(duration)
        node.errors += error
        node.truncated += truncated
        if items:
            node.bucket = node.bucket or str(items.get('rl.bucket') or '')
            node.group = node.group or str(items.get('lens.group') or '')
        mine = node.processes.get(process)
        if mine is None and self._cells < _MOST_CELLS:
            self._cells += 1
            mine = node.processes[process] = [0, 0]
        if mine is not None:
            mine[0] += 1
            mine[1] += duration
        cover = self._covers.pop(span_id, None)
        if cover is not None:
            node.idle += cover.uncovered(start + duration)
            node.watched += duration
        above = self._covers.get(place.step)
        if above is not None:
            above.add(start, start + duration, idle=node.bucket == 'idle', direct=place.up == place.step)

    def _place(
        self, span_id: bytes, parent_id: bytes, name: str, items: Mapping[str, Any] | None, links: Links | None
    ) -> Place:
        drawn = parent_id if parent_id != self._run_root else b''
        linked = False
        if not drawn and links:
            linked, drawn = _enclosing(links)
        step = b''
        if not drawn:
            above = self.root
        else:
            place = self._places.get(drawn)
            if place is not None:
                above, step = place.node.here(), drawn if place.is_step else place.step
            else:
                above = self._stranger(drawn)
        node = self._child(above, name)
        node.linked = node.linked or linked
        is_step = linked or bool(items and items.get('lens.group') == STEP_GROUP)
        place = self._places[span_id] = Place(node, drawn, step, is_step)
        if len(self._places) > _MOST_REMEMBERED:
            oldest, kept = self._places.popitem(last=False)
            if kept.open:
                self._places[oldest] = kept  # a job that is still on: its steps must find it
        stranger = self._strangers.pop(span_id, None)
        if stranger is not None:
            # Only damaged ids could make a span its own ancestor; such a tree would have no end.
            self._join(self.root if stranger.holds(node) else node, stranger)
        return place

    def _stranger(self, span_id: bytes) -> Node:
        node = self._strangers.get(span_id)
        if node is None:
            if len(self._strangers) >= _MOST_STRANGERS:
                self._join(self.root, self._strangers.pop(next(iter(self._strangers))))
            node = self._strangers[span_id] = Node('')
        return node

    def _child(self, above: Node, name: str) -> Node:
        if above.name == name:
            return above  # recursion is one row
        node = above.children.get(name)
        if node is None:
            if self._nodes >= _MOST_NODES:
                name = OTHERS
                node = above.children.get(name)
            if node is None:
                node = above.children[name] = Node(name)
                self._nodes += 1
        return node

    def _join(self, node: Node, stranger: Node) -> None:
        self._nodes -= node.take(stranger) - 1  # a stand-in is not counted

    def settle(self) -> Node:
        """The tree, with the children of parents that never showed up at its top."""
        for stranger in self._strangers.values():
            self._join(self.root, stranger)
        self._strangers.clear()
        return self.root

    def dump(self) -> list[Any]:
        """Plain data for the checkpoint."""
        numbers: dict[int, int] = {}
        nodes: list[Any] = []

        def put(top: Node) -> None:
            work = [(top, -1)]
            while work:
                node, above = work.pop()
                numbers[id(node)] = len(nodes)
                work += [(child, len(nodes)) for child in node.children.values()]
                nodes.append(
                    (
                        above,
                        node.name,
                        node.durations.dump(),
                        (node.errors, node.truncated, node.bucket, node.group, node.linked, node.idle, node.watched),
                        node.processes,
                    )
                )

        put(self.root)
        strangers: list[tuple[bytes, int]] = []
        for span_id, stranger in self._strangers.items():
            strangers.append((span_id, len(nodes)))
            put(stranger)
        # A checkpoint must stay small: beside the open spans, the last ones do for stragglers of other processes.
        young = len(self._places) - _CHECKPOINTED_PLACES
        places = [
            (span_id, numbers[id(p.node.here())], p.up, p.step, p.is_step, p.open)
            for n, (span_id, p) in enumerate(self._places.items())
            if p.open or n >= young
        ]
        covers = [(span_id, cover.dump()) for span_id, cover in self._covers.items()]
        return [nodes, strangers, places, covers]

    def load(self, plain: list[Any]) -> None:
        """Take back what `dump` gave.

        Args:
            plain: Its answer.
        """
        nodes: list[Node] = []
        above: int
        name: str
        for above, name, durations, rest, processes in plain[0]:
            node = Node(name)
            node.durations.load(durations)
            node.errors, node.truncated, node.bucket, node.group, node.linked, node.idle, node.watched = rest
            node.processes = {label: list(mine) for label, mine in processes.items()}
            nodes.append(node)
            if above >= 0:
                nodes[above].children[name] = node
        self.root = nodes[0]
        self._nodes = len(nodes)
        self._cells = sum(len(node.processes) for node in nodes)
        self._strangers = {span_id: nodes[place] for span_id, place in plain[1]}
        self._places = OrderedDict((sid, Place(nodes[int(number)], *rest)) for sid, number, *rest in plain[2])
        self._covers = {span_id: Cover.load(cover) for span_id, cover in plain[3]}


def _enclosing(links: Links) -> tuple[bool, bytes]:
    """Whether the links are those of a root the recorder started, and the span it was started in (b'': none)."""
    ours = False
    for _, span_id, items in links:
        word = items.get('lens.link') if items else None
        if word == 'enclosing':
            return True, span_id
        ours = ours or word == 'run'
    return ours, b''
