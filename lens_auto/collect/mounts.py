# SPDX-License-Identifier: Apache-2.0
"""What kind of disk a path lies on: a journal in memory or on a network file system is one nobody asked for."""

from __future__ import annotations

import os

DISK = 'disk'
RAM = 'RAM disk'
NETWORK = 'network file system'

_RAM = frozenset(('tmpfs', 'ramfs', 'devtmpfs', 'hugetlbfs', 'rootfs'))
_NETWORK = frozenset(
    (
        '9p',
        'acfs',
        'afs',
        'beegfs',
        'bhfs',
        'ceph',
        'cifs',
        'coda',
        'daos',
        'gfs',
        'gfs2',
        'glusterfs',
        'gpfs',
        'lustre',
        'ncpfs',
        'nfs',
        'nfs4',
        'ocfs2',
        'orangefs',
        'panfs',
        'pvfs2',
        'smb3',
        'smbfs',
        'virtiofs',
        'wekafs',
    )
)


def kind_of(path: str, table: str = '/proc/self/mountinfo') -> str:
    """`DISK`, `RAM` or `NETWORK` for the file system a path lies on, or would lie on once made.

    FUSE counts as network: what is behind it (sshfs, an object store) cannot be told, and maps badly. An unknown file
    system, or a machine without /proc, counts as a disk.

    Args:
        path: Any absolute path; the nearest part that exists decides.
        table: The mount table, in the kernel's mountinfo format.
    """
    return _kind(file_system(path, table))


def file_system(path: str, table: str = '/proc/self/mountinfo') -> str:
    """Name of the file system type at a path ('ext4', 'nfs4', ...), '' when unknown.

    Args:
        path: Any absolute path.
        table: The mount table.
    """
    path = os.path.realpath(path)
    found, longest = '', -1
    try:
        # Bytes of a mount point may be anything; surrogateescape is what os.fsdecode would do.
        with open(table, encoding='utf-8', errors='surrogateescape') as lines:
            for line in lines:
                # "36 35 98:0 /root /mount/point options [tags...] - type source super-options"
                left, _, right = line.partition(' - ')
                fields = left.split(' ')
                if len(fields) < 5:
                    continue
                point = _unescape(fields[4])
                # A later mount on the same point hides an earlier one, hence >=.
                if len(point) >= longest and _holds(point, path):
                    found, longest = right.partition(' ')[0], len(point)
    except OSError:
        return ''
    return found


def _holds(point: str, path: str) -> bool:
    return point == '/' or path == point or path.startswith(point + '/')


def _unescape(point: str) -> str:
    if '\\' not in point:
        return point
    for code, character in (('\\040', ' '), ('\\011', '\t'), ('\\012', '\n'), ('\\134', '\\')):
        point = point.replace(code, character)
    return point


def _kind(name: str) -> str:
    if name in _RAM:
        return RAM
    if name in _NETWORK or name == 'fuse' or name.startswith('fuse.'):
        return NETWORK
    return DISK
