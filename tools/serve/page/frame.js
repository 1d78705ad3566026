// What stands around the picture: its title, its axes with their marks, and the bar of its colours. The same drawing
// is used on the page and for the picture that is saved.

import { tickText } from './axes.js';

/**
 * Draws the frame. `what`: {map: {left, top, width, height}, extent (of the slice in the map), rows, columns (Dimension),
 * flipped, title, bar: {scale, css(place), units, names} or null, ink, soft, line, font}.
 */
export function drawFrame(context, what) {
  const { map, extent, rows, columns, flipped } = what;
  const box = { left: map.left + Math.max(0, extent.left), right: map.left + Math.min(map.width, extent.right),
                top: map.top + Math.max(0, extent.top), bottom: map.top + Math.min(map.height, extent.bottom) };
  if (box.right - box.left < 2 || box.bottom - box.top < 2) return;
  const small = map.left < 60;
  context.font = `${small ? 10 : 11}px ${what.font}`;
  context.lineWidth = 1;
  context.strokeStyle = what.line;
  context.strokeRect(box.left - 0.5, box.top - 0.5, box.right - box.left + 1, box.bottom - box.top + 1);

  /** The edges in view along an axis, and where an edge is drawn. */
  const axis = (length, low, high, from, to, turned, offset) => {
    const size = high - low;
    const place = (edge) => offset + low + (turned ? length - edge : edge) * (size / length);
    const edge = (pixel) => (turned ? length - ((pixel - offset - low) * length) / size : ((pixel - offset - low) * length) / size);
    const ends = [edge(from), edge(to)];
    return { place, first: Math.max(0, Math.min(...ends)), last: Math.min(length, Math.max(...ends)) };
  };
  context.fillStyle = what.soft;
  context.strokeStyle = what.soft;
  const mark = (x0, y0, x1, y1) => {
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  };
  const across = axis(columns.length, extent.left, extent.right, box.left, box.right, flipped[1], map.left);
  const wide = box.right - box.left;
  context.textAlign = 'center';
  context.textBaseline = 'top';
  let free = -Infinity;
  const shown = columns.ticks(across.first, across.last, Math.max(2, Math.floor(wide / (small ? 50 : 70))), Math.max(1, Math.floor(wide / 100)));
  for (const { at, text } of flipped[1] ? shown.reverse() : shown) {
    const x = Math.round(across.place(at)) + 0.5;
    mark(x, box.bottom + 1, x, box.bottom + 5);
    const half = context.measureText(text).width / 2;
    const middle = Math.min(Math.max(x, 2 + half), map.left + map.width + (small ? 40 : 60) - half);
    if (middle - half < free) continue;
    context.fillText(text, middle, box.bottom + 7);
    free = middle + half + 8;
  }
  const down = axis(rows.length, extent.top, extent.bottom, box.top, box.bottom, flipped[0], map.top);
  const tall = box.bottom - box.top;
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  for (const { at, text } of rows.ticks(down.first, down.last, Math.max(2, Math.floor(tall / 44)), Math.max(1, Math.floor(tall / 30)))) {
    const y = Math.round(down.place(at)) + 0.5;
    mark(box.left - 5, y, box.left - 1, y);
    context.fillText(fitted(context, text, box.left - 8), box.left - 7, y);
  }
  context.textAlign = 'center';
  context.textBaseline = 'top';
  context.fillText(fitted(context, columns.title(), wide), (box.left + box.right) / 2, box.bottom + (small ? 20 : 24));
  context.save();
  context.translate(Math.max(2, box.left - (small ? 44 : 60)), (box.top + box.bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(fitted(context, rows.title(), tall), 0, 0);
  context.restore();

  context.fillStyle = what.ink;
  context.font = `600 ${small ? 11 : 13}px ${what.font}`;
  context.textAlign = 'left';
  context.textBaseline = 'alphabetic';
  context.fillText(fitted(context, what.title, what.bar?.units ? wide : map.left + map.width + 40 - box.left), box.left, box.top - 9);
  if (what.bar) drawBar(context, what, box, small);
}

function drawBar(context, what, box, small) {
  const { bar } = what;
  const left = box.right + 12;
  const wide = small ? 9 : 13;
  const tall = box.bottom - box.top;
  context.font = `${small ? 10 : 11}px ${what.font}`;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.strokeStyle = what.soft;
  if (bar.names) {  // two colours, or some
    bar.names.forEach(([name, colour], k) => {
      const y = box.top + k * 20;
      context.fillStyle = colour;
      context.fillRect(left, y, wide, wide);
      context.strokeRect(left + 0.5, y + 0.5, wide - 1, wide - 1);
      context.fillStyle = what.soft;
      context.fillText(name, left + wide + 5, y + wide / 2);
    });
    return;
  }
  for (let y = 0; y < tall; ++y) {
    context.fillStyle = bar.css(1 - (y + 0.5) / tall);
    context.fillRect(left, box.top + y, wide, 1.5);
  }
  context.strokeRect(left + 0.5, box.top + 0.5, wide - 1, tall - 1);
  context.fillStyle = what.soft;
  const ticks = bar.scale.ticks(Math.max(2, Math.floor(tall / 40)));
  const step = ticks.length > 1 ? Math.min(...ticks.slice(1).map((v, k) => Math.abs(v - ticks[k]))) : bar.scale.high - bar.scale.low;
  for (const v of ticks) {
    const y = Math.round(box.bottom - bar.scale.place(v) * tall) + 0.5;
    context.beginPath();
    context.moveTo(left + wide, y);
    context.lineTo(left + wide + 4, y);
    context.stroke();
    context.fillText(bar.text ? bar.text(v) : tickText(v, bar.scale.name === 'linear' ? step || 1 : Math.abs(v) / 10 || 1), left + wide + 6, y);
  }
  if (bar.units) {
    context.textBaseline = 'alphabetic';
    context.fillText(bar.units, left, box.top - 9);
  }
}

/** A text cut to a width. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end)}…`).width > width) --end;
  return `${text.slice(0, end)}…`;
}
