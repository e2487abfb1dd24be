"""The driver on the CPU in CUDA's place: memory by file descriptors, and streams that are threads.

It shows all of the way but CUDA: memory that is exported and mapped, DLPack, and the values of the
timelines, which lavapipe cannot export and are used as they are.
"""

import ctypes
import mmap
import os
import queue
import threading

_PAGE = 4096  # lavapipe's own, before the memory


class Stream:
    """A stream: what is put on it is done in its order, while the host goes on."""

    def __init__(self):
        self._work = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            self._work.get()()
            self._work.task_done()

    def put(self, work):
        self._work.put(work)

    def synchronize(self):
        self._work.join()


class Mapping:
    def __init__(self, buffer):
        fd = buffer.fd()
        self._map = mmap.mmap(fd, 0)
        os.close(fd)
        self._view = (ctypes.c_char * len(self._map)).from_buffer(self._map)
        self.address = ctypes.addressof(self._view) + _PAGE

    def close(self):
        del self._view
        self._map.close()


class Semaphore:
    def __init__(self, streams, timeline):
        self._streams = streams
        self._timeline = timeline
        self.signals, self.waits = 0, 0

    def signal(self, value, stream):
        self.signals += 1
        self._put(stream, lambda: self._timeline.signal(value))

    def wait(self, value, stream):
        self.waits += 1
        self._put(stream, lambda: self._timeline.wait(value))

    def _put(self, stream, work):
        if stream == 0:  # torch's work on the CPU, which is done when the host goes on
            work()
        else:
            self._streams[stream].put(work)

    def close(self):
        pass


class HostPeer:
    dlpack_device = (1, 0)
    shares_timelines = False

    def __init__(self):
        self.streams = {}  # by their handles; 0 is torch's own
        self.current = 0
        self.is_closed = False

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        pass

    def memory(self, buffer):
        return Mapping(buffer)

    def semaphore(self, timeline):
        return Semaphore(self.streams, timeline)

    def synchronize(self):
        for stream in self.streams.values():
            stream.synchronize()

    def close(self):
        self.is_closed = True


def connect(device):
    """Lets a device take torch's tensors on the CPU for those of its GPU."""
    from vkgemm.tensors import Tensors
    peer = HostPeer()
    device._tensors = Tensors(device._gpu, device.name, peer, lambda: peer.current)
    return device
