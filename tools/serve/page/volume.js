// Which dimensions of an array are a volume.

/** The dimensions of a volume: the two of the picture and the first other one, in the array's order; null without three. */
export function volumeOf(info, axes, channels = -1) {
  const other = info.shape.findIndex((n, d) => n > 1 && !axes.includes(d) && d !== channels);
  return other < 0 || axes.some((d) => info.shape[d] < 2) ? null : [...axes, other].sort((a, b) => a - b);
}
