"""Matrix products on one device, of numpy's arrays and torch's tensors."""

from __future__ import annotations

import logging
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrays import ELEMENT_TYPES, Numpy, Operand, as_matrix
from .binding import (ArgumentError, Error, check, enumerator_names, ffi, lib, output, text,
                      value_of, written)
from .gpu import Gpu
from .names import require_known, suggests
from .packed import PackedMatrix
from .plans import PackPlan, Plan, Plans
from .problem import part, real
from .products import EXPLAINED, Products, is_tensor
from .quantised import (CodeBlocks, Codes, quantised, require_in_f16,
                        require_product_element)
from .request import Request
from .staging import Staging
from .tuning import TuneProgress, TuneResult, tune

if TYPE_CHECKING:
    from .tensors import Tensors


def _close(gpu: Gpu, plans: Plans) -> None:
    if gpu.is_inherited:
        return
    with gpu.lock:
        try:
            gpu.settle()
        finally:  # nobody calls this again
            while gpu.at_close:
                gpu.at_close.pop()()
            plans.close()
            gpu.close()


class Device(Products):
    """A Vulkan device that multiplies matrices: D = epilogue(A·B), by gemm() and its relatives.

    Each call copies its numpy arrays to the device, waits for the result, and copies it back.  Any
    thread may call; the device computes one call at a time.

    Arrays are float16, float32 or bfloat16 (of ml_dtypes).  With bf16=True, uint16 arrays hold the
    bits of bfloat16, and such results are uint16 arrays.  A and B have one type, which may also be
    int8 or an 8-bit float (of ml_dtypes).  float16 and bfloat16 products are accumulated in
    float32, int8 products in int32, without error.  Transposed views are read in place.

    torch tensors on the same GPU give tensors.  Such a call runs in the order of torch's current
    stream, and the host does not wait.  Tensors of empty() and shared(), and results, are in memory
    that torch and the device share.  Other tensors are copied on the device: the first copy gives a
    warning, and `copies` counts all.  No gradient is computed.  If another stream still reads a
    tensor, keep the tensor until that stream is done.

    index: a position in devices().  None takes the best device, a GPU if there is one.
    self_test: True tests each kind of kernel when a call first needs it, "all" tests all kinds now.
        A kind that failed is not used, and some fast kinds are used only if they passed.  The
        file of `vkgemm info --self-test` keeps the verdicts, and every device reads it.  So the
        test delays the first call of each kind once per machine, driver and version of vkgemm.
        False is the default, because a bad driver may crash the process during the test.
    pipeline_cache_file: keeps compiled kernels between runs.  Only you may be able to write there.
    tuning_file: a table that `vkgemm tune` wrote.  It precedes default_tuning_file and the built-in
        tables.
    tune: "first" tunes each new problem at its first call, as Device.tune() does, and adds the
        result to default_tuning_file.  vkgemm does not tune a problem that a table of this device
        already contains, even if its search was incomplete.  If the file or the memory fails, the
        logger gets a warning and the call goes on.  None: only Device.tune() tunes.
    tune_budget_ms: the milliseconds for each problem of tune="first".

    The attribute last_ms holds the milliseconds that the device took for the last product or
    quantise_rows(), without copies.  In the first call it may include work that the driver delays
    until the first execution, such as compilation.  It is None if there is no
    such time: after a batch, after a call with torch tensors, and on a device without timestamps.

    Errors are vkgemm.Error, with a status and a message.  Messages that are not errors go to the
    logger "vkgemm" of the module logging.  A child made by fork() cannot use the device: calls
    raise Error.  It must end by os._exit(), as multiprocessing does, because exit handlers of
    drivers may hang there.

    >>> a = np.float32([[1, 2], [3, 4]])
    >>> with vkgemm.Device() as device:
    ...     device.gemm(a, a)
    array([[ 7., 10.],
           [15., 22.]], dtype=float32)
    """

    #: The most plans that are kept.
    max_plans = 512

    @suggests
    def __init__(self, index: int | None = None, *, self_test: bool | str = False,
                 pipeline_cache_file: str | PathLike[str] | None = None,
                 tuning_file: str | PathLike[str] | None = None, tune: str | None = None,
                 tune_budget_ms: float = 200.0):
        if tune not in (None, "first"):
            raise ArgumentError(f"tune is {tune!r}: it must be None or 'first'")
        if real("tune_budget_ms", tune_budget_ms) <= 0:
            raise ArgumentError(f"tune_budget_ms is {tune_budget_ms!r}: it must be more than 0")
        self._gpu = Gpu(index, self_test, pipeline_cache_file=pipeline_cache_file,
                        tuning_file=tuning_file)
        if tune is not None and not self._gpu.has_timestamps:
            self._gpu.close()
            raise Error("missing_feature", "tune is 'first': the device's queue has no timestamps")
        self._tunes_first, self._tune_budget_ms = tune is not None, tune_budget_ms
        self._shown = f"<vkgemm.Device {self.name}>"
        self._staging = Staging(self._gpu)
        self._tensors: Tensors | None = None
        self._is_batch = False
        self._plans = Plans(self._gpu)
        self._closing = weakref.finalize(self, _close, self._gpu, self._plans)
        self.last_ms: float | None = None

    def close(self) -> None:
        """Free everything that the device holds, packed matrices too, even if the device is lost.

        Later calls raise Error.  In a child made by fork() it does nothing.

        >>> device = vkgemm.Device()
        >>> device.close()
        """
        self._closing()

    def __repr__(self) -> str:
        return self._shown

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Record the calls of a `with` block, and compute them in one submission at its end.

        With torch, each submission makes the GPU switch between CUDA and Vulkan.  A batch switches
        once.  Results are valid after the block.  Inside it, do not read results and do not write to
        operands.  A call may take a result of an earlier call as an operand.

        These calls submit what was recorded before them:
        - pack(), quantise(), pack_codes(), release_memory() and, with tensors, tune();
        - a call with a numpy array that only overlaps an earlier result, or has another order;
        - a call with a result that must be copied, or with an `out` that must be copied.

        Other threads wait for the end of the block before they use the device.  If the block
        raises, the calls that were not submitted are dropped, and the values of their results are
        undefined.  last_ms is None after a batch.
        Raises Error if the block is inside another batch() of this device.

        >>> a = np.float32([[1, 2], [3, 4]])
        >>> with device.batch():
        ...     d = device.gemm(a, a)
        ...     e = device.gemm(d, a)
        >>> e
        array([[ 37.,  54.],
               [ 81., 118.]], dtype=float32)
        """
        with self._gpu.lock:
            self._require_open()
            if self._is_batch:
                raise Error("unsupported", "batch() is inside another batch() of this device")
            self._is_batch = True
            self._staging.begin_batch()
            if self._tensors is not None:
                self._tensors.begin_batch()
            completed = False
            try:
                yield
                completed = True
            finally:
                self._is_batch = False
                self.last_ms = None
                try:
                    self._end_batch(completed)
                finally:
                    self._staging.end_batch()

    def _end_batch(self, run: bool) -> None:
        """Computes what a batch recorded, or drops it, as after a close() inside the block."""
        if self._gpu.is_inherited:
            return
        try:
            if self._tensors is not None:
                self._tensors.end_batch(run)
            if run and self._gpu.context is not None:
                self._staging.flush()
        finally:
            self._staging.drop()

    def _caps(self) -> Any:
        self._require_open()
        return value_of("VkgemmCaps const *", lib.vkgemm_context_caps, self._gpu.context)

    def _require_open(self) -> None:
        self._gpu.require_own()
        if self._gpu.context is None:
            raise Error("invalid_handle", "the device is closed")

    def _tensors_of(self, argument: str, tensor: Any) -> Tensors:
        """What this device does with tensors, of which this is one."""
        if self._tensors is None and not tensor.is_cuda:
            raise ArgumentError(f"{argument} is a torch tensor on {tensor.device}: "
                                "it must be on the GPU, or a numpy array")
        return self._shared()

    def _shared(self) -> Tensors:
        with self._gpu.lock:
            self._require_open()
            if self._tensors is None:
                try:
                    from .torch import on
                except ImportError as error:
                    raise Error("missing_feature", f"torch is missing: {error}") from None
                self._tensors = on(self._gpu, self.name)
                if self._is_batch:
                    self._tensors.begin_batch()
            return self._tensors

    def _described(self) -> Any:
        device = output("VkgemmDeviceCaps")
        check(lib.vkgemm_caps_device(self._caps(), device))
        return device

    @property
    def name(self) -> str:
        """The device's name, as its driver reports it.

        >>> device.name in vkgemm.devices()
        True
        """
        return text(self._described().name)

    @property
    def driver(self) -> str:
        """The driver's name and version.

        >>> len(device.driver) > 0
        True
        """
        device = self._described()
        return f"{text(device.driver_name)} {text(device.driver_info)}".rstrip()

    @property
    def architecture(self) -> str:
        """The key of the device's tuning table, for example "nvidia_sm90".

        >>> len(device.architecture) > 0
        True
        """
        return text(self._described().architecture)

    @property
    def paths(self) -> dict[str, str]:
        """The reason why each path cannot be used; empty if it can.

        >>> device.paths["fma"]
        ''
        """
        caps, result = self._caps(), {}
        available, reason = ffi.new("VkBool32 *"), ffi.new("char const **")
        for path, name in enumerate(enumerator_names("VkgemmPath")):
            check(lib.vkgemm_caps_path(caps, path, available, reason))
            result[name] = "" if available[0] else text(reason[0])
        return result

    @suggests
    def pack(self, b: Operand, *, gated_b: str | None = None, f32: str = "ieee",
             multiply_as: str | None = None, bf16: bool = False) -> PackedMatrix:
        """Keep B on the device, in the order that it loads fastest, for any number of products.

        b: (K, N), or (batch, K, N) for a batch or for groups.
        gated_b: for products with a gate, the place of B's columns, as in gated().
        f32: how a float32 b is multiplied, as in gemm().
        multiply_as: the type to which b is rounded, as in gemm().
        bf16: uint16 arrays hold the bits of bfloat16.

        Returns a PackedMatrix, which is passed as b.
        Raises ArgumentError if b has a wrong type or shape.

        >>> weight = device.pack(np.ones((3, 2), np.float16))
        >>> device.gemm(np.ones((1, 3), np.float16), weight)
        array([[3., 3.]], dtype=float16)
        """
        if is_tensor(b):
            return self._tensors_of("b", b).pack(b, gated_b, f32, multiply_as)
        arrays = Numpy(bf16)
        array = as_matrix("b", arrays.array("b", b))
        source, lies = arrays.lay_out(array)
        matrix = part(type=arrays.element("b.dtype", array.dtype, ELEMENT_TYPES)) + lies
        with self._gpu.lock:
            self._require_open()
            self._gpu.settle()
            plan = PackPlan(self._gpu, array.shape, matrix, gated_b, f32=f32,
                            multiply_as=multiply_as)
            return self._staging.pack(plan, {"source": source}, array)

    @suggests
    def quantise(self, b: Operand, type: str = "int4", *, group_k: int = 128, zeros: bool = False,
                 element: str = "f16", gated_b: str | None = None) -> PackedMatrix:
        """Keep B on the device as codes: pack_codes(vkgemm.quantise(b, …)).

        b, type, group_k, zeros: as in vkgemm.quantise().
        element, gated_b: as in pack_codes().  A must be float16, or bfloat16 with element="bf16".

        The host computes the codes.  A torch tensor is copied there, with a warning, and counted in
        `copies`.
        Returns a PackedMatrix.
        Raises ArgumentError if b has a wrong shape or an element that is not finite.  With element
        "f16" the numbers that the codes represent must be finite in float16, too.

        >>> weight = device.quantise(np.ones((64, 2), np.float32), "int8")
        >>> device.gemm(np.ones((1, 64), np.float16), weight)
        array([[64., 64.]], dtype=float16)
        """
        if is_tensor(b):
            b = self._tensors_of("b", b).on_host("b", b)
        require_product_element(element)
        numbers, codes = quantised(b, type, group_k, zeros)
        if element == "f16":
            require_in_f16(numbers, codes)
        return self.pack_codes(codes, element=element, gated_b=gated_b)

    @suggests
    def pack_codes(self, codes: Codes | CodeBlocks, *, element: str = "f16",
                   gated_b: str | None = None) -> PackedMatrix:
        """Keep a quantised B on the device, in the order that it loads fastest.

        codes: vkgemm.Codes or vkgemm.CodeBlocks, of numpy arrays.
        element: the type that B is multiplied as, "f16" or "bf16".  A must have it.  float32 is not
            possible.  "s8" takes codes that are integers: A is then int8, as quantise_rows() makes.
            "e4m3" takes codes that are 8-bit floats, multiplied as float16: A is then an 8-bit
            float or float16, whose rows have scales for groups of columns.
        gated_b: for products with a gate, the place of B's columns, as in gated().

        Returns a PackedMatrix.  Raises Error if the device cannot pack these codes.

        >>> codes = vkgemm.quantise(np.ones((64, 2), np.float32), "int4", group_k=32)
        >>> device.pack_codes(codes)
        <vkgemm.PackedMatrix (64, 2) f16, int4 codes>
        """
        if not isinstance(codes, (Codes, CodeBlocks)):
            raise ArgumentError(f"codes is {type(codes).__name__}: it must be vkgemm.Codes or "
                                "vkgemm.CodeBlocks")
        require_product_element(element)
        arrays = codes.arrays()
        with self._gpu.lock:
            self._require_open()
            self._gpu.settle()
            layout = "col_major" if isinstance(codes, CodeBlocks) else "row_major"
            in_groups = element == "e4m3"
            plan = PackPlan(self._gpu, codes.shape,
                            part(type="f16" if in_groups else element, layout=layout), gated_b,
                            codes.quantisation(), a_group_k=128 if in_groups else None)
            return self._staging.pack(plan, arrays, None)

    @suggests
    def empty(self, *shape: int, dtype: Any) -> Any:
        """Allocate a torch tensor in memory that torch and this device share.

        dtype: torch.float16, torch.bfloat16, torch.float32, torch.int8 or torch.int32.

        Returns a tensor of this shape with undefined values.
        Raises Error if torch is missing, or does not compute on this device.

        >>> device.empty(2, 3, dtype=torch.float16).shape
        torch.Size([2, 3])
        """
        return self._shared().empty(shape, dtype)

    def shared(self, tensor: Any) -> Any:
        """Return a torch tensor, if it is in shared memory, or else a copy of it there.

        The copy of a transposed tensor is transposed.  It has no gradient.
        Raises ArgumentError if it is no tensor, or is on another device.

        >>> x = device.empty(2, 3, dtype=torch.float16)
        >>> device.shared(x) is x, device.shared(x + 1) is x
        (True, False)
        """
        if not is_tensor(tensor):
            raise ArgumentError(f"tensor is {type(tensor).__name__}: it must be a torch tensor")
        return self._tensors_of("tensor", tensor).shared(tensor)

    @property
    def copies(self) -> Counter[str]:
        """The number of torch tensors that calls had to copy, by the names of arguments.

        >>> device.copies
        Counter()
        """
        return Counter() if self._tensors is None else self._tensors.copies

    def release_memory(self) -> None:
        """Free the memory that is kept for later torch tensors, as torch.cuda.empty_cache() does.

        It waits until the GPU is done.

        >>> device.release_memory()
        """
        if self._tensors is not None:
            self._tensors.release()

    @property
    def default_tuning_file(self) -> str:
        """The tuning table that every process of this user reads for this device and driver.

        Empty if the environment names no folder for it.

        >>> "tuned-" in device.default_tuning_file
        True
        """
        return written(lib.vkgemm_default_tuning_file, self._caps())

    def tune(self, a: Operand, b: Operand | PackedMatrix, *, budget_ms: float = 1000.0,
             file: str | PathLike[str] | None = None,
             progress: Callable[[TuneProgress], Any] | None = None, warm_l2: bool = False,
             **arguments: Any) -> TuneResult:
        """Time configurations of a product, and let later calls take the fastest.

        Later calls of this device take the result if they have the same shapes, types, layouts and
        packing of operands, gate, row operation, c and aux.  Calls with similar shapes may take it,
        too.  Tune with the packed matrix that you will use.  tune() always times, also a problem
        that a table contains.

        a, b and the other arguments: as in explain(), without config.  Only the values of offsets
            and sizes are used, and only if the host knows them and the groups have no gaps.
            Otherwise groups are timed at equal sizes.
        budget_ms: the milliseconds for the whole run, compilation included.  It ends at most one
            configuration later.
        file: the table that gets the result, such as default_tuning_file.  None stores nothing, and
            only this Device takes the result.  (Device(tune="first") stores its results.)
        progress: is called with a TuneProgress after each timing, and returns False to end the run.
            It must not use this device.  An exception ends the run and is raised.
        warm_l2: time with a warm L2 cache.  Otherwise the cache is flushed before each execution.

        Other threads wait until it is done.  The last bits of later results may differ, because
        another configuration may add in another order.
        Returns a TuneResult.
        Raises Error if memory for the operands is short, or the file cannot be read or written.  If
        only the file fails, this Device still uses the fastest configuration.

        >>> a, b = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
        >>> result = device.tune(a, b, activation="relu", budget_ms=50)
        >>> result.config in device.explain(a, b, activation="relu")
        True
        """
        bf16 = arguments.pop("bf16", False)
        require_known("tune", arguments, [
            *(name for name in EXPLAINED if name != "config"),
            "budget_ms", "file", "progress", "warm_l2"])
        with self._gpu.lock:
            self._require_open()
            self._gpu.settle()
            request = self._requested(a, b, bf16, arguments)
            try:
                return self._tune(request, budget_ms=budget_ms, file=file, progress=progress,
                                  warm_l2=warm_l2)
            finally:  # the context may have a result that no file has
                self._plans.close()
                if self._tensors is not None:
                    self._tensors.forget()

    def _tune(self, request: Request, **options: Any) -> TuneResult:
        if self._tensors is not None:
            self._tensors.settle()
        return self._gpu.with_room(lambda: tune(self._gpu, request, **options))

    def _tune_first(self, request: Request) -> None:
        """Tunes a new problem, unless a table has timed it.  What of it may fail is logged."""
        try:
            self._tune(request, budget_ms=self._tune_budget_ms, file=self.default_tuning_file or None,
                       skip_timed=True)
        except Error as error:
            if error.status not in ("io_error", "invalid_argument", "out_of_device_memory"):
                raise
            logging.getLogger("vkgemm").warning("not tuned, or not stored: %s", error)

    def _plan(self, request: Request) -> Plan:
        """The request's plan, from those that were kept or new."""
        self._require_open()
        self._gpu.settle()
        return self._plans.find(request, self.max_plans,
                                self._tune_first if self._tunes_first else None)

    def _call(self, build: Callable[..., Request], a: Any, *, bf16: bool, in_rows: bool = False,
              **arguments: Any) -> Any:
        """Runs what `build` makes of the arguments; `in_rows`: it takes A in rows alone."""
        if type(a) is not np.ndarray and is_tensor(a):
            self.last_ms = None
            tensors = self._tensors or self._tensors_of("a", a)
            return tensors.run(build, self._plan, dict(a=a, **arguments), in_rows)
        request = build(Numpy(bf16), a, **arguments)
        with self._gpu.lock:
            self.last_ms = self._staging.run(self._plan(request), request)
        results = tuple(request.outputs[name] for name in request.results)
        return results[0] if len(results) == 1 else results
