// The map of chunks: which of a slice are stored, and how well each compresses.

import { aborted, json } from './api.js';
import { colours, css, nanColour, numberText } from './colour.js';
import { bytesText, el, theme } from './dom.js';

export class ChunkMap {
  constructor(element, fail) {
    this.element = element;
    this.fail = fail;
  }

  async show(info, slice) {
    this.controller?.abort();
    this.controller = new AbortController();
    this.element.replaceChildren(el('p', { class: 'wait' }, 'Looking at the chunks…'));
    try {
      const flat = info.shape.length < 2;
      const map = await json('api/chunks', { path: slice.path, axes: flat ? null : slice.axes.join(','),
                                             at: flat ? null : slice.at.join(',') }, this.controller.signal);
      this.draw(info, map);
    } catch (error) {
      if (aborted(error)) return;
      this.element.replaceChildren(el('p', { class: 'empty-panel' }, error.message));
    }
  }

  draw(info, map) {
    const ratios = map.ratios.filter((v) => v !== null);
    const low = ratios.length ? Math.min(...ratios) : 1;
    const high = ratios.length ? Math.max(...ratios) : 1;
    const colour = (k) => {
      if (map.states[k] === 2) return null;
      if (map.states[k] === 1) return css(nanColour());
      const at = high > low ? Math.log(map.ratios[k] / low) / Math.log(high / low) : 0.6;
      return css(colours('viridis')[Math.max(0, Math.min(255, Math.round(at * 255)))]);
    };
    // As large as there is room beside the words; a phone's page is as tall as it takes.
    const wide = Math.max(160, this.element.clientWidth - 50);
    const tall = Math.max(240, this.element.clientHeight - 190);
    const size = Math.max(1, Math.min(160, Math.floor(Math.min(wide / map.columns, tall / map.rows))));
    const canvas = el('canvas', { class: 'chunk-canvas', role: 'img',
                                  'aria-label': `${map.stored} of ${map.chunks} chunks are stored, ${map.damaged} are damaged` });
    canvas.width = map.columns * size;
    canvas.height = map.rows * size;
    const context = canvas.getContext('2d');
    const gap = size > 4 ? 1 : 0;
    for (let i = 0; i < map.rows; ++i) {
      for (let j = 0; j < map.columns; ++j) {
        const fill = colour(i * map.columns + j);
        context.fillStyle = fill ?? theme('ground');
        context.fillRect(j * size, i * size, size - gap, size - gap);
      }
    }
    const hint = el('p', { class: 'hint' }, 'Point at a chunk.');
    canvas.addEventListener('pointermove', (event) => {
      const box = canvas.getBoundingClientRect();
      const i = Math.floor(((event.clientY - box.top) / box.height) * map.rows);
      const j = Math.floor(((event.clientX - box.left) / box.width) * map.columns);
      if (i < 0 || j < 0 || i >= map.rows || j >= map.columns) return;
      const k = i * map.columns + j;
      const state = map.states[k] === 2 ? 'not stored: reads as the fill value' : map.states[k] === 1 ? 'damaged'
                                                                                  : `compressed ${numberText(map.ratios[k], high - low)} times`;
      hint.textContent = `Chunk ${map.first[0] + i * map.window[0]}, ${map.first[1] + j * map.window[1]}: ${state}`;
    });
    const bar = el('span', { class: 'swatch-bar' });
    const table = colours('viridis');
    bar.style.background = `linear-gradient(90deg, ${[0, 64, 128, 192, 255].map((k) => css(table[k])).join(',')})`;
    const swatch = (name, fill) => {
      const box = el('span', { class: 'swatch' });
      box.style.background = fill;
      return el('span', { class: 'key' }, box, name);
    };
    const ratio = map.bytes > 0 ? ` · ${numberText(map.decoded_bytes / map.bytes, 1)} times compressed` : '';
    this.element.replaceChildren(
      el('p', { class: 'summary' },
         `${map.stored.toLocaleString('en')} of ${map.chunks.toLocaleString('en')} chunks are stored, in ${bytesText(map.bytes)}${ratio}.` +
           (map.damaged ? ` ${map.damaged} are damaged.` : '') + (map.sampled ? ` Each cell stands for ${map.window.join(' × ')} chunks, of which one was looked at.`
                                                                  : map.how ? ` Each cell stands for ${map.how}.` : '')),
      el('p', { class: 'sub' }, `Chunks of ${info.chunks.join(' × ')} elements`),
      canvas, hint,
      el('p', { class: 'keys' }, el('span', { class: 'key' }, numberText(low, high - low), bar, numberText(high, high - low), ' times compressed'),
         swatch('not stored', theme('ground')), map.damaged ? swatch('damaged', css(nanColour())) : null),
      ...map.damage.map((one) => el('p', { class: 'damage' }, `(${one.chunk.join(', ')}): ${one.text}`)));
  }
}
