"""Types that several files name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Mapping, Optional

import numpy as np

Values = np.ndarray[Any, Any]  # in memory, of any shape and dtype
DType = np.dtype[Any]
Document = dict[str, Any]  # an object of JSON, or options by name as the library takes them
Attrs = Optional[Mapping[str, object]]
Remote = Optional[Mapping[str, object]]  # storage_options: how places over the network are reached

# Words, by which checkers of types find wrong ones.
Mode = Literal["r", "r+", "a", "w", "w-"]
Format = Literal["zmeta", "v1", "v2", "v3"]
Reduction = Literal[
    "min", "max", "sum", "mean", "std", "var", "count", "argmin", "argmax", "any", "all", "median",
    # Percentiles may be any number; these are what checkers of types know.
    "p0", "p0.1", "p0.5", "p1", "p2", "p2.5", "p3", "p4", "p5",
    "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15", "p16", "p17", "p18", "p19", "p20",
    "p21", "p22", "p23", "p24", "p25", "p26", "p27", "p28", "p29", "p30", "p31", "p32", "p33", "p34", "p35",
    "p36", "p37", "p38", "p39", "p40", "p41", "p42", "p43", "p44", "p45", "p46", "p47", "p48", "p49", "p50",
    "p51", "p52", "p53", "p54", "p55", "p56", "p57", "p58", "p59", "p60", "p61", "p62", "p63", "p64", "p65",
    "p66", "p67", "p68", "p69", "p70", "p71", "p72", "p73", "p74", "p75", "p76", "p77", "p78", "p79", "p80",
    "p81", "p82", "p83", "p84", "p85", "p86", "p87", "p88", "p89", "p90", "p91", "p92", "p93", "p94", "p95", "p96", "p97",
    "p97.5", "p98", "p99", "p99.5", "p99.9", "p100",
]
Coarsening = Literal["mean", "max", "min", "mode", "nearest"]

if TYPE_CHECKING:
    from numpy.typing import DTypeLike as DTypeLike
else:
    DTypeLike = object  # NumPy says what is no dtype
