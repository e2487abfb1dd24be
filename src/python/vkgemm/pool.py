"""Memory that Vulkan and another API on the same GPU see both, lent as tensors."""

from __future__ import annotations

import bisect
import functools
from collections import defaultdict
from collections.abc import Callable

from .binding import Error
from .dlpack import Lender
from .gpu import Gpu
from .memory import Buffer
from .shared import Mapping, Peer


class Block(Lender):
    """A buffer that the other API sees, too.  It is lent as one tensor at a time."""

    def __init__(self, buffer: Buffer, mapping: Mapping, device: tuple[int, int],
                 back: Callable[[Block], None]):
        super().__init__(mapping.address, device)
        self.buffer = buffer
        self.mapping = mapping
        self.stream = 0  # the one in whose order it is used
        self.index = 0  # the last submission that used it
        self._back = back

    def returned(self) -> None:
        if not self.buffer.gpu.is_inherited:
            self._back(self)


def _rounded(size: int) -> int:
    """The size of the block for so many bytes: at most an eighth more, of large ones."""
    if size <= 1 << 16:
        return max(1 << 12, 1 << (size - 1).bit_length())
    step = 1 << ((size - 1).bit_length() - 4)
    return -(-size // step) * step


class Pool:
    """Blocks, and those of them that are free, kept in the order of the stream that used them."""

    def __init__(self, gpu: Gpu, peer: Peer):
        self._gpu = gpu
        self._peer = peer
        self._free: defaultdict[tuple[int, int], list[Block]] = defaultdict(list)
        self._blocks: dict[int, Block] = {}  # by their addresses, which are also sorted
        self._addresses: list[int] = []
        self._closed = False
        self._is_left = False

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks."""
        return sum(block.buffer.size for block in self._blocks.values())

    def take(self, size: int, stream: int) -> Block:
        """A block for a tensor of so many bytes, whose last use came before on the stream."""
        rounded = _rounded(max(size, 1))
        free = self._free[stream, rounded]
        if free:
            block = free.pop()
        else:
            block = self._gpu.with_room(functools.partial(self._new, rounded))
        block.stream = stream
        return block

    def _new(self, size: int) -> Block:
        buffer = Buffer(self._gpu, size, host=False, shared=True)
        try:
            mapping = self._peer.memory(buffer)
        except BaseException:
            buffer.close()
            raise
        block = Block(buffer, mapping, self._peer.dlpack_device, self._back)
        self._blocks[block.address] = block
        bisect.insort(self._addresses, block.address)
        return block

    def _back(self, block: Block) -> None:
        if self._closed:
            with self._peer:
                self._peer.synchronize()
                block.mapping.close()
            del self._blocks[block.address]
            self._leave()
        else:
            self._free[block.stream, block.buffer.size].append(block)

    def find(self, address: int) -> Block | None:
        """The block that an address lies in."""
        block = self._blocks.get(address)
        if block is None:
            index = bisect.bisect_right(self._addresses, address) - 1
            if index >= 0:
                candidate = self._blocks[self._addresses[index]]
                if address < candidate.address + candidate.buffer.size:
                    return candidate
        return block

    def release(self) -> None:
        """Frees the blocks that no tensor uses.  All work must be done."""
        for free in list(self._free.values()):
            while free:
                block = free.pop()
                del self._blocks[block.address]
                self._addresses.remove(block.address)
                block.mapping.close()
                block.buffer.close()

    def close(self) -> None:
        """Frees all but what tensors still use, which goes with them.  All work must be done.

        leave() comes after.
        """
        self._closed = True
        self.release()

    def leave(self) -> None:
        """Closes the other API, at once or when the last tensor has gone."""
        self._is_left = True
        self._leave()

    def _leave(self) -> None:
        if self._is_left and not self._blocks:
            self._is_left = False
            self._peer.close()
