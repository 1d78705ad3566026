// Pictures of several channels: arrays that hold red, green and blue, and images of OME-Zarr whose channels have
// colours of their own.

const usual = [0x0000ff, 0x00ff00, 0xff0000, 0xff00ff, 0x00ffff, 0xffff00, 0xffffff];
const most = 7;

/** The composite of an array of red, green, blue and perhaps opacity; null for any other. */
export function colourComposite(info) {
  if (!info.colours) return null;
  const { axis, count, full } = info.colours;
  const colours = [0xff0000, 0x00ff00, 0x0000ff, null];
  return { axis, fixed: true, channels: colours.slice(0, count).map((colour, index) => ({ index, colour, range: [0, full], on: true })) };
}

const rgbOf = (text) => (/^[0-9a-f]{6}$/i.test(text ?? '') ? parseInt(text, 16) : null);

/** The first image of a group's attributes, of OME-Zarr 0.4 or 0.5: {axes, datasets, channels}; null without one. */
export function multiscaleOf(attributes) {
  const ome = attributes?.ome ?? attributes;
  const first = Array.isArray(ome?.multiscales) ? ome.multiscales[0] : null;
  const datasets = Array.isArray(first?.datasets) ? first.datasets.map((one) => one?.path).filter((path) => typeof path === 'string' && path !== '') : [];
  if (datasets.length === 0) return null;
  return { name: typeof first.name === 'string' ? first.name : '', axes: Array.isArray(first.axes) ? first.axes : [], datasets,
           channels: Array.isArray(ome.omero?.channels) ? ome.omero.channels : [] };
}

/** The composite of an image's channels; null for an image without. */
export function channelComposite(scales, shape) {
  const axis = scales.axes.findIndex((one) => one?.type === 'channel' || one === 'c');
  if (axis < 0 || axis >= shape.length || (shape[axis] < 2 && scales.channels.length === 0)) return null;
  const channels = Array.from({ length: Math.min(shape[axis], most) }, (_, index) => {
    const given = scales.channels[index] ?? {};
    const { start, end } = given.window ?? {};
    return { index, name: typeof given.label === 'string' ? given.label : `Channel ${index}`, colour: rgbOf(given.color) ?? usual[index % usual.length],
             range: Number.isFinite(start) && Number.isFinite(end) && start < end ? [start, end] : null, on: given.active !== false };
  });
  return { axis, fixed: false, channels };
}

/** Paints tiles of several channels as one. */
export class Blend {
  constructor(composite) {
    this.channels = composite.channels.filter(({ on }) => on);
  }

  /** `parts`: the tile of each channel that is on; as Painter.paint else. */
  paint(canvas, parts, row, column, flipped) {
    canvas.width = column.count;
    canvas.height = row.count;
    const image = new ImageData(column.count, row.count);
    const pixels = image.data;
    const ways = this.channels.map(({ colour, range }) => {
      const [low, high] = range ?? [0, 1];
      return { alpha: colour === null, low, factor: high > low ? 1 / (high - low) : 0, rgb: [(colour >> 16) & 255, (colour >> 8) & 255, colour & 255] };
    });
    const first = parts[0];
    const high = first ? Math.min(row.count, first.rows - row.first) : 0;
    const wide = first ? Math.min(column.count, first.columns - column.first) : 0;
    for (let i = 0; i < high; ++i) {
      const from = (row.first + i) * first.columns + column.first;
      for (let j = 0; j < wide; ++j) {
        const to = 4 * ((flipped[0] ? row.count - 1 - i : i) * column.count + (flipped[1] ? column.count - 1 - j : j));
        let [red, green, blue, alpha, numbers] = [0, 0, 0, 1, 0];
        for (let k = 0; k < ways.length; ++k) {
          const v = parts[k].values[from + j];
          if (v !== v) continue;
          ++numbers;
          const at = Math.max(0, Math.min(1, (v - ways[k].low) * ways[k].factor));
          if (ways[k].alpha) {
            alpha = at;
            continue;
          }
          red += at * ways[k].rgb[0];
          green += at * ways[k].rgb[1];
          blue += at * ways[k].rgb[2];
        }
        pixels[to] = red;  // rounded and clamped by the array
        pixels[to + 1] = green;
        pixels[to + 2] = blue;
        pixels[to + 3] = numbers > 0 ? alpha * 255 : 0;
      }
    }
    canvas.getContext('2d').putImageData(image, 0, 0);
  }
}
