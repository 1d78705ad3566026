// Lines: the profile along an axis at the pointer, and arrays of one dimension. A point that stands for several
// elements is their mean, with their extremes as a band.

import { aborted, json } from './api.js';
import { numberText } from './colour.js';

const plain = { text: numberText };
import { el, sharpen, theme } from './dom.js';

/** Draws a line into an element; returns what hover() takes. */
export class Plot {
  constructor(element, height, hover = null) {
    this.element = element;
    this.height = height;
    this.canvas = el('canvas', { role: 'img', 'aria-label': 'No line yet' });
    this.note = el('p', { class: 'note' });
    element.replaceChildren(this.canvas, this.note);
    new ResizeObserver(() => this.draw()).observe(element);
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

  /** `quantity` says what the values mean, `along` (Dimension) what stands at the ends of the axis. */
  show(line, mark, title, quantity = plain, along = null) {
    this.quantity = quantity;
    this.along = along;
    this.line = line;
    this.mark = mark;
    this.canvas.setAttribute('aria-label', title);
    this.note.textContent = line.sampled ? `${line.how}` : line.how;
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
    if (!this.line) return;
    const { values, low, high, window: size, length } = this.line;
    let bottom = Infinity;
    let top = -Infinity;
    for (const list of [values, low, high]) {
      for (const v of list) {
        if (v === null) continue;
        if (v < bottom) bottom = v;
        if (v > top) top = v;
      }
    }
    if (bottom > top) [bottom, top] = [0, 1];
    if (bottom === top) {
      const room = Math.abs(top) * 0.1 || 1;
      bottom -= room;
      top += room;
    }
    context.font = `11px ${theme('sans')}`;
    const labels = [this.quantity.text(top, top - bottom), this.quantity.text(bottom, top - bottom)];
    const left = Math.min(80, Math.max(...labels.map((text) => context.measureText(text).width)) + 8);
    const area = (this.area = { left, top: 8, width: width - left - 8, height: tall - 28 });
    const x = (k) => area.left + ((k + 0.5) / values.length) * area.width;
    const y = (v) => area.top + (1 - (v - bottom) / (top - bottom)) * area.height;
    context.strokeStyle = theme('line');
    context.strokeRect(area.left + 0.5, area.top + 0.5, area.width - 1, area.height - 1);
    context.fillStyle = theme('soft');
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    context.fillText(labels[0], left - 5, area.top + 5);
    context.fillText(labels[1], left - 5, area.top + area.height - 4);
    context.textBaseline = 'top';
    context.textAlign = 'left';
    context.fillText(this.along?.text(0) || '0', area.left, area.top + area.height + 5);
    context.textAlign = 'right';
    context.fillText(this.along?.text(length - 1) || (length - 1).toLocaleString('en'), area.left + area.width, area.top + area.height + 5);
    if (size > 1) this.band(context, x, y);
    this.stroke(context, x, y);
    if (this.mark !== null && this.mark !== undefined) {
      const at = Math.round(x(Math.floor(this.mark / size))) + 0.5;
      context.strokeStyle = theme('accent');
      context.globalAlpha = 0.8;
      context.beginPath();
      context.moveTo(at, area.top);
      context.lineTo(at, area.top + area.height);
      context.stroke();
      context.globalAlpha = 1;
    }
  }

  band(context, x, y) {
    const { low, high } = this.line;
    context.fillStyle = theme('accent');
    context.globalAlpha = 0.22;
    const wide = Math.max(1, x(1) - x(0));
    for (let k = 0; k < low.length; ++k) {
      if (low[k] !== null) context.fillRect(x(k) - wide / 2, y(high[k]), wide, Math.max(1, y(low[k]) - y(high[k])));
    }
    context.globalAlpha = 1;
  }

  stroke(context, x, y) {
    const { values } = this.line;
    context.strokeStyle = theme('ink');
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
