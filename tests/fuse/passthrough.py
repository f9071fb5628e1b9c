#!/usr/bin/python3
"""Shows a directory as another file system would: one without hard links, one that takes 'A' and 'a' for one name,
one on which something writes to 'busy.log' whenever that is read.

usage: passthrough.py DIRECTORY MOUNT_POINT [no-links] [no-symlinks] [no-exec] [any-case] [busy]

It wants Debian's python3-fusepy, stays in the foreground, and unmounts by itself when its stdin ends: however the one
that started it comes to an end, nothing stays mounted.
"""

import errno
import logging
import os
import stat
import subprocess
import sys

from fusepy import FUSE, FuseOSError, Operations

# Which bytes a name has is nobody's business: with this, any byte is a letter.
ENCODING = "latin-1"


class Passthrough(Operations):
    use_ns = True

    def __init__(self, directory, switches):
        self.directory, self.switches = os.fsencode(directory), switches

    def real(self, path):
        """Where a path lies in the directory: of names that are alike, the one that is there."""
        real = self.directory + path.encode(ENCODING)
        if "any-case" not in self.switches or os.path.lexists(real):
            return real
        real = self.directory
        for name in path.encode(ENCODING).strip(b"/").split(b"/"):
            there = os.path.join(real, name)
            if not os.path.lexists(there) and os.path.isdir(real):
                alike = (other for other in os.listdir(real) if is_alike(other, name))
                there = os.path.join(real, next(alike, name))
            real = there
        return real

    def getattr(self, path, handle=None):
        about = os.lstat(self.real(path)) if handle is None else os.fstat(handle)
        shown = {name: getattr(about, name) for name in ("st_ino", "st_mode", "st_nlink", "st_uid", "st_gid", "st_size")}
        shown |= {f"st_{which}": getattr(about, f"st_{which}_ns") for which in ("atime", "mtime", "ctime")}
        if "no-exec" in self.switches and stat.S_ISREG(about.st_mode):
            shown["st_mode"] &= ~0o111
        return shown

    def readdir(self, path, _handle):
        for entry in os.scandir(self.real(path)):
            about = entry.stat(follow_symlinks=False)
            kind = {"st_ino": about.st_ino, "st_mode": stat.S_IFMT(about.st_mode)}
            yield entry.name.decode(ENCODING), kind, 0

    def readlink(self, path):
        return os.readlink(self.real(path)).decode(ENCODING)

    def mkdir(self, path, mode):
        os.mkdir(self.real(path), mode)

    def rmdir(self, path):
        os.rmdir(self.real(path))

    def unlink(self, path):
        os.unlink(self.real(path))

    def rename(self, old, new):
        old, there = self.real(old), self.real(new)
        if there == old:
            # The same name, in other letters.
            there = os.path.join(os.path.dirname(old), os.path.basename(new.encode(ENCODING)))
        os.rename(old, there)

    def link(self, path, target):
        self.refuse_if("no-links")
        os.link(self.real(target), self.real(path), follow_symlinks=False)

    def symlink(self, path, target):
        self.refuse_if("no-symlinks")
        os.symlink(target.encode(ENCODING), self.real(path))

    def mknod(self, path, mode, device):
        os.mknod(self.real(path), mode, device)

    def chmod(self, path, mode):
        os.chmod(self.real(path), mode)

    def chown(self, path, user, group):
        os.chown(self.real(path), user, group, follow_symlinks=False)

    def utimens(self, path, times):
        os.utime(self.real(path), ns=times, follow_symlinks=False)

    def statfs(self, _path):
        about = os.statvfs(self.directory)
        return {name: getattr(about, name) for name in dir(about) if name.startswith("f_")}

    def open(self, path, flags):
        return os.open(self.real(path), flags & ~os.O_NOFOLLOW)

    def create(self, path, mode):
        return os.open(self.real(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)

    def read(self, path, size, offset, handle):
        if "busy" in self.switches and os.path.basename(path) == "busy.log":
            about = os.fstat(handle)
            os.utime(handle, ns=(about.st_atime_ns, about.st_mtime_ns + 1))
        return os.pread(handle, size, offset)

    def write(self, _path, data, offset, handle):
        return os.pwrite(handle, data, offset)

    def truncate(self, path, length, handle=None):
        os.truncate(self.real(path) if handle is None else handle, length)

    def fsync(self, _path, _data_only, handle):
        os.fsync(handle)

    def release(self, _path, handle):
        os.close(handle)

    def refuse_if(self, switch):
        if switch in self.switches:
            raise FuseOSError(errno.EPERM)


def is_alike(one, other):
    one, other = (name.decode("utf-8", "surrogateescape").lower() for name in (one, other))
    return one == other


def unmount_at_the_end_of_stdin(mount_point):
    """In a process of its own: the one that serves may hang."""
    if os.fork():
        return
    while os.read(0, 4096):
        pass
    unmount = ["umount", "-l", mount_point] if os.getuid() == 0 else ["fusermount", "-uz", mount_point]
    subprocess.run(unmount, check=False, stderr=subprocess.DEVNULL)
    os._exit(0)


def main():
    directory, mount_point, *switches = sys.argv[1:]
    logging.basicConfig()
    unmount_at_the_end_of_stdin(mount_point)
    # As this umask is its caller's, the mode of a file must not be masked twice.
    os.umask(0)
    # A deleted file that is open is not kept under another name, and inodes are those of the directory.
    options = dict.fromkeys(["hard_remove", "use_ino", "default_permissions"], True)
    # How many seconds the kernel believes what it was told of a name: it may have come or gone by another spelling, and
    # the file may have been written.
    seconds = 0 if {"any-case", "busy"} & set(switches) else 60
    options |= dict.fromkeys(["entry_timeout", "attr_timeout"], seconds)
    FUSE(Passthrough(directory, switches), mount_point, encoding=ENCODING, foreground=True, nothreads=True, **options)


main()
