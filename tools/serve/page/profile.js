// Lines: the profile along an axis at the pointer, and arrays of one dimension. A point that stands for several
// elements is their mean, with their extremes as a band.

import { aborted, json } from './api.js';
import { Dimension, roundTicks, tickText } from './axes.js';
import { numberText } from './colour.js';
import { el, onResize, sharpen, theme } from './dom.js';

const plain = { text: numberText };

/** The colours of the page. */
const screen = () => ({ ink: theme('ink'), soft: theme('soft'), line: theme('line'), accent: theme('accent'), font: theme('sans') });

/** Draws a line into an element; returns what hover() takes. */
export class Plot {
  constructor(element, height, hover = null) {
    this.element = element;
    this.height = height;
    this.canvas = el('canvas', { role: 'img', 'aria-label': 'No line yet' });
    this.note = el('p', { class: 'note' });
    element.replaceChildren(this.canvas, this.note);
    onResize(element, () => this.draw());
    this.canvas.addEventListener('pointermove', (event) => {
      if (!this.line || !this.area) return;
      const x = event.clientX - this.canvas.getBoundingClientRect().left;
      const k = Math.floor(((x - this.area.left) / this.area.width) * this.line.values.length);
      if (k < 0 || k >= this.line.values.length) return;
      this.mark = k * this.line.window;
      this.draw();
      hover?.(k * this.line.window, this.line.values[k]);
    });
  }

  /** `quantity` says what the values mean, `along` (Dimension) what stands along the axis; `name` is written above. */
  show(line, mark, title, quantity = plain, along = null, name = '') {
    this.quantity = quantity;
    this.along = along ?? new Dimension('', line.length, null);
    this.name = name;
    this.line = line;
    this.mark = mark;
    this.canvas.setAttribute('aria-label', title);
    this.note.textContent = line.how;
    this.note.hidden = !this.note.textContent;
    this.draw();
  }

  clear() {
    this.line = null;
    this.draw();
  }

  draw() {
    const width = this.element.clientWidth;
    const tall = this.height === 'fill' ? Math.max(160, this.element.clientHeight - 40) : this.height;
    if (width < 40) return;
    const context = sharpen(this.canvas, width, tall);
    if (this.line) this.area = this.paint(context, width, tall, screen());
  }

  /** What is on the screen, in other colours (as screen()). */
  drawn(looks) {
    const ratio = Math.max(2, window.devicePixelRatio || 1);
    const [width, tall] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const canvas = document.createElement('canvas');
    canvas.width = width * ratio;
    canvas.height = tall * ratio;
    const context = canvas.getContext('2d');
    context.scale(ratio, ratio);
    context.fillStyle = '#ffffff';
    context.fillRect(0, 0, width, tall);
    this.paint(context, width, tall, looks);
    return canvas;
  }

  /** Least and most of the values and their extremes, apart from each other. */
  extremes() {
    let [bottom, top] = [Infinity, -Infinity];
    for (const list of [this.line.values, this.line.low, this.line.high]) {
      for (const v of list) {
        if (v === null) continue;
        if (v < bottom) bottom = v;
        if (v > top) top = v;
      }
    }
    if (bottom > top) return [0, 1];
    if (bottom < top) return [bottom, top];
    const room = Math.abs(top) * 0.1 || 1;
    return [bottom - room, top + room];
  }

  /** Draws all; returns where the line lies. */
  paint(context, width, tall, looks) {
    const { values, window: size, length } = this.line;
    const large = this.height === 'fill';
    const [bottom, top] = this.extremes();
    context.font = `11px ${looks.font}`;
    const marks = this.marks(bottom, top, Math.max(2, Math.floor(tall / (large ? 60 : 34))));
    const left = Math.ceil(Math.min(110, Math.max(...marks.map(([, text]) => context.measureText(text).width)) + 9));
    const area = { left, top: large ? 28 : 8, width: width - left - 12 };
    area.height = tall - area.top - (large ? 44 : 20);
    const x = (k) => area.left + ((k + 0.5) / values.length) * area.width;
    const edge = (at) => area.left + (at / (size * values.length)) * area.width;
    const y = (v) => area.top + (1 - (v - bottom) / (top - bottom)) * area.height;
    context.strokeStyle = looks.line;
    context.strokeRect(area.left + 0.5, area.top + 0.5, area.width - 1, area.height - 1);
    context.fillStyle = looks.soft;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const [v, text] of marks) {
      const at = Math.round(y(v)) + 0.5;
      context.fillText(text, left - 5, Math.max(area.top + 5, Math.min(area.top + area.height - 4, at)));
      context.strokeRect(area.left, at, area.width, 0);
    }
    context.textAlign = 'center';
    context.textBaseline = 'top';
    let free = -Infinity;
    for (const { at, text } of this.along.ticks(0, length, Math.max(2, Math.floor(area.width / 60)), Math.max(1, Math.floor(area.width / 100)))) {
      const place = Math.round(edge(at)) + 0.5;
      context.strokeRect(place, area.top + area.height, 0, 4);
      const half = context.measureText(text).width / 2;
      const middle = Math.max(half, Math.min(width - half, place));
      if (middle - half < free) continue;
      context.fillText(text, middle, area.top + area.height + 6);
      free = middle + half + 8;
    }
    if (large) {
      context.fillText(this.along.title(), area.left + area.width / 2, area.top + area.height + 24, area.width);
      context.fillStyle = looks.ink;
      context.font = `600 13px ${looks.font}`;
      context.textAlign = 'left';
      context.textBaseline = 'alphabetic';
      const units = this.quantity.moments ? '' : this.quantity.units;
      context.fillText(units ? `${this.name} (${units})` : this.name, area.left, area.top - 9, area.width);
    }
    if (size > 1) this.band(context, x, y, looks);
    this.stroke(context, x, y, looks);
    if (this.mark !== null && this.mark !== undefined) {
      const at = Math.round(x(Math.floor(this.mark / size))) + 0.5;
      context.strokeStyle = looks.accent;
      context.globalAlpha = 0.8;
      context.strokeRect(at, area.top, 0, area.height);
      context.globalAlpha = 1;
    }
    return area;
  }

  /** [value, text] of round values; of times, the first and the last. */
  marks(bottom, top, most) {
    const text = (v) => this.quantity.text(v, top - bottom);
    if (this.quantity.moments) return [[bottom, text(bottom)], [top, text(top)]];
    const round = roundTicks(bottom, top, most);
    const step = round.length > 1 ? round[1] - round[0] : top - bottom;
    return round.map((v) => [v, tickText(v, step)]);
  }

  band(context, x, y, looks) {
    const { low, high } = this.line;
    context.fillStyle = looks.accent;
    context.globalAlpha = 0.22;
    const wide = Math.max(1, x(1) - x(0));
    for (let k = 0; k < low.length; ++k) {
      if (low[k] !== null) context.fillRect(x(k) - wide / 2, y(high[k]), wide, Math.max(1, y(low[k]) - y(high[k])));
    }
    context.globalAlpha = 1;
  }

  stroke(context, x, y, looks) {
    const { values } = this.line;
    context.strokeStyle = looks.ink;
    context.lineWidth = 1.25;
    context.beginPath();
    let down = false;
    values.forEach((v, k) => {
      if (v === null) {
        down = false;
        return;
      }
      if (down) context.lineTo(x(k), y(v));
      else context.moveTo(x(k), y(v));
      if (!down && (k + 1 === values.length || values[k + 1] === null)) context.lineTo(x(k) + 1, y(v));
      down = true;
    });
    context.stroke();
    context.lineWidth = 1;
  }
}

/** Asks for one line at a time; an answer that comes too late is not shown. */
export class LineReader {
  async read(parameters) {
    this.controller?.abort();
    this.controller = new AbortController();
    try {
      return await json('api/profile', parameters, this.controller.signal);
    } catch (error) {
      if (aborted(error)) return null;
      throw error;
    }
  }
}
