"""In which order joints are eliminated so that the factor of their rows stays sparse.

Joints are neighbours if they share a body that can move. Always the joint with the fewest neighbours goes first, and leaves its neighbours
connected with each other (minimum degree). A chain stays as sparse as it is.
"""

import heapq

import numpy as np


def neighbours(base, follower, movable) -> list[set[int]]:
    """The joints next to each joint."""
    at_body: dict[int, list[int]] = {}
    for joint, bodies in enumerate(zip(base, follower, strict=True)):
        for body in set(bodies):
            if body >= 0 and movable[body]:
                at_body.setdefault(body, []).append(joint)
    near: list[set[int]] = [set() for _ in base]
    for joints in at_body.values():
        for joint in joints:
            near[joint].update(joints)
    return [others - {joint} for joint, others in enumerate(near)]


def minimum_degree(near: list[set[int]]) -> tuple[list[int], list[set[int]]]:
    """(joints in the order of their elimination, neighbours that each joint still has then). Changes `near`."""
    order, done = [], set()
    queue = [(len(others), joint) for joint, others in enumerate(near)]
    heapq.heapify(queue)
    while queue:
        degree, joint = heapq.heappop(queue)
        if joint in done or degree != len(near[joint]):
            continue
        done.add(joint)
        order.append(joint)
        for other in near[joint]:
            near[other] |= near[joint]
            near[other] -= {joint, other}
            heapq.heappush(queue, (len(near[other]), other))
    return order, near


def elimination(base, follower, movable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(position (nj,), column (nj, fill), slot (nj, fill, fill)) of `Topology`, int32."""
    order, later = minimum_degree(neighbours(base, follower, movable))
    nj, fill = len(order), max(map(len, later), default=0)
    position = np.zeros(nj, np.int32)
    position[order] = np.arange(nj)
    column, slot = np.full((nj, fill), nj, np.int32), np.zeros((nj, fill, fill), np.int32)
    for k, joint in enumerate(order):
        column[k, : len(later[joint])] = sorted(position[list(later[joint])])
    where = [{int(row): i + 1 for i, row in enumerate(rows) if row < nj} | {k: 0} for k, rows in enumerate(column)]
    for k, rows in enumerate(column):
        for a, row in enumerate(rows[rows < nj]):
            for b in range(a + 1):
                slot[k, a, b] = where[rows[b]][int(row)]
    return position, column, slot
