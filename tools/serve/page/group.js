// The page of a group: its members with thumbnails, and what they are.

import { aborted, address, json, known, numbers } from './api.js';
import { Blend, colourComposite } from './channels.js';
import { Painter, percentiles } from './colour.js';
import { bytesText, el, shapeText, typeText } from './dom.js';
import { Quantity } from './quantity.js';

const mostElements = 4e6;  // of a slice that is read whole for its thumbnail
const side = 128;
const mostAtOnce = 3;
const mostRows = 3000;

export class Members {
  /** open(path): shows a member. */
  constructor(element, open, fail) {
    Object.assign(this, { element, open, fail });
    this.waiting = [];
    this.busy = 0;
    this.seen = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        this.seen.unobserve(entry.target);
        this.waiting.push(entry.target);
      }
      this.next();
    }, { root: null, rootMargin: '200px' });
  }

  async show(path, node) {
    this.controller?.abort();
    this.controller = new AbortController();
    this.waiting = [];
    this.seen.disconnect();
    const { signal } = this.controller;
    this.element.replaceChildren(el('p', { class: 'wait' }, 'Looking at the members…'));
    try {
      const { children } = await json('api/tree', { path }, signal);
      children.forEach(known);
      this.draw(children, node);
    } catch (error) {
      if (!aborted(error)) this.element.replaceChildren(el('p', { class: 'empty-panel' }, error.message));
    }
  }

  draw(children, node) {
    const attributes = Object.entries(node.attributes ?? {}).filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value));
    const facts = attributes.length === 0 ? null
      : el('dl', { class: 'pairs' }, ...attributes.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, String(value))]));
    if (children.length === 0) {
      this.element.replaceChildren(el('p', { class: 'empty-panel' }, 'This group is empty.'), ...(facts ? [facts] : []));
      return;
    }
    const cell = (text, name) => el('td', name ? { class: name } : {}, text ?? '');
    const rows = children.slice(0, mostRows).map((child) => {
      const thumb = el('canvas', { class: 'thumb', width: 1, height: 1, role: 'img', 'aria-label': '' });
      const row = el('tr', {},
                     el('td', { class: 'thumb-cell' }, thumb),
                     el('td', {}, el('button', { type: 'button', class: 'member', onclick: () => this.open(child.path) }, child.name)),
                     cell(child.shape ? shapeText(child.shape) : child.kind === 'group' ? 'group' : ''),
                     cell(child.dtype ? typeText(child.dtype) : ''),
                     cell(child.chunks ? shapeText(child.chunks) : ''),
                     cell(child.logical_bytes === undefined ? '' : bytesText(child.logical_bytes), 'number'),
                     cell(child.error ?? child.format ?? '', child.error ? 'broken' : ''));
      row.child = child;
      thumb.child = child;
      if (child.shape?.length >= 2 && !child.shape.includes(0) && /^[<>|=]?[biufcMm]/.test(child.dtype)) this.seen.observe(thumb);
      return row;
    });
    const head = ['Picture', 'Name', 'Shape', 'Elements', 'Chunks', 'Size', 'Format'].map((word) => el('th', { scope: 'col' }, word));
    const more = children.length > mostRows ? el('p', { class: 'sub' }, `and ${(children.length - mostRows).toLocaleString('en')} more: search for them above the tree`) : null;
    this.element.replaceChildren(...(facts ? [facts] : []),
                                 el('table', { class: 'members' }, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...rows)), ...(more ? [more] : []));
  }

  next() {
    while (this.busy < mostAtOnce && this.waiting.length > 0) {
      ++this.busy;
      const thumb = this.waiting.shift();
      this.thumbnail(thumb, this.controller.signal).catch((error) => {
        if (!aborted(error)) thumb.title = error.message;
      }).finally(() => {
        --this.busy;
        this.next();
      });
    }
  }

  /** A small picture of the middle: all of a small slice, a few elements of a large one. */
  async thumbnail(canvas, signal) {
    const { path } = canvas.child;
    const info = await json('api/picture', { path }, signal);
    if (info.kind !== 'number' && info.kind !== 'bool') return;
    const composite = colourComposite(info);
    const axes = composite ? info.shape.map((_, d) => d).filter((d) => d !== composite.axis && info.shape[d] > 1).slice(-2) : info.axes;
    const [rows, columns] = axes.map((d) => info.shape[d]);
    const quantity = new Quantity(info);
    const level = Math.max(0, Math.ceil(Math.log2(Math.max(rows, columns) / side)));
    const small = rows * columns <= mostElements;
    const read = (at) => {
      const parameters = { path, axes: axes.join(','), at: at.join(','), v: info.version };
      const url = small ? address('api/tile', { ...parameters, level: `${level},${level}`, tile: '0,0', with: level > 0 ? 'mean' : 'nearest' })
                        : address('api/preview', parameters);
      return numbers(url, signal, (values) => quantity.decode(values));
    };
    const up = info.dimensions?.[axes[0]]?.up === true;
    const paint = (painter, what, data) =>
      painter.paint(canvas, what, { first: 0, count: data.rows }, { first: 0, count: data.columns }, [up, false]);
    if (composite) {
      const parts = await Promise.all(composite.channels.map(({ index }) => read(info.middle.with(composite.axis, index))));
      paint(new Blend(composite), parts, parts[0]);
    } else {
      const data = await read(info.middle);
      const range = percentiles(Array.from(data.values), quantity.missing, 2, 98) ?? [0, 1];
      const map = /label|mask|segment/i.test(canvas.child.name) ? 'labels' : 'viridis';
      paint(new Painter({ map, scale: 'linear', range }, quantity.missing), data, data);
    }
    canvas.style.aspectRatio = `${columns} / ${rows}`;
    canvas.setAttribute('aria-label', `Thumbnail of ${canvas.child.name}`);
    canvas.dataset.state = 'drawn';
  }
}
