// Tables as a grid that scrolls over any number of rows: what is in view is asked for in pages of rows and columns.

import { aborted, json } from './api.js';
import { el, onResize, settled } from './dom.js';

const rowHeight = 26;
const leastWidth = 132;
const mostWidth = 240;
const mostHeight = 8e6;  // browsers give no element more than about 3·10⁷ pixels
const pageRows = 50;
const pageColumns = 20;
const mostPages = 200;

export class Table {
  constructor(element, fail) {
    this.element = element;
    this.fail = fail;
    this.head = el('div', { class: 'grid-head', role: 'row' });
    this.body = el('div', { class: 'grid-body', role: 'rowgroup' });
    this.filler = el('div', { class: 'grid-filler' }, this.body);
    this.scroller = el('div', { class: 'grid-scroller', tabindex: '0', role: 'grid', 'aria-label': 'Elements' }, this.head, this.filler);
    element.append(this.scroller);
    this.later = settled(() => this.ask(), 60);
    this.scroller.addEventListener('scroll', () => this.draw());
    this.scroller.addEventListener('keydown', (event) => this.key(event));
    this.scroller.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    onResize(element, () => this.draw());
  }

  /** `slice`: {path, field, axes, at, version}; a structure has its fields as columns. `quantity`: what numbers mean. */
  show(info, slice, quantity = null) {
    this.info = info;
    this.quantity = quantity;
    this.slice = slice;
    this.pages = new Map();
    this.controller?.abort();
    const rank = info.shape.length;
    const flat = rank < 2;
    this.rows = rank === 0 ? 1 : info.shape[flat ? 0 : slice.axes[0]];
    this.fields = flat && info.kind === 'structure';
    this.columns = flat ? (this.fields ? info.fields.length : 1) : info.shape[slice.axes[1]];
    this.flat = flat;
    const room = (this.element.clientWidth - 100) / this.columns;
    this.cellWidth = Math.round(Math.max(leastWidth, Math.min(mostWidth, room)));
    this.scroller.style.setProperty('--cell', `${this.cellWidth}px`);
    this.rowFactor = Math.max(1, (this.rows * rowHeight) / mostHeight);
    this.columnFactor = Math.max(1, (this.columns * this.cellWidth) / mostHeight);
    this.filler.style.height = `${Math.min(this.rows * rowHeight, mostHeight)}px`;
    this.filler.style.width = `${Math.min(this.columns * this.cellWidth, mostHeight) + 84}px`;
    this.exact = null;
    this.scroller.scrollTo(0, 0);
    this.scroller.setAttribute('aria-rowcount', this.rows + 1);
    this.scroller.setAttribute('aria-colcount', this.columns + 1);
    this.draw();
  }

  title(column) {
    if (this.fields) return this.info.fields[column];
    return this.flat ? (this.info.label ?? 'value') : String(column);
  }

  /** Rows and columns that fit in whole. */
  room() {
    return { rows: Math.max(1, Math.floor(this.scroller.clientHeight / rowHeight) - 1),
             columns: Math.max(1, Math.floor((this.scroller.clientWidth - 84) / this.cellWidth)) };
  }

  /** Of `count` rows or columns the first one in view. Where the filler is too short for all, its ends are theirs. */
  first(scroll, most, count, fitting, size, factor) {
    if (factor === 1) return Math.max(0, Math.min(Math.floor(scroll / size), count - 1));
    return Math.max(0, Math.min(Math.round((scroll / Math.max(1, most)) * (count - fitting)), count - 1));
  }

  view() {
    const { scrollTop, scrollLeft, clientHeight, clientWidth, scrollHeight, scrollWidth } = this.scroller;
    const room = this.room();
    // A pixel may stand for many rows: where a key or the wheel led, the row is known better.
    const row = this.exact?.top === scrollTop ? this.exact.row
                                              : this.first(scrollTop, scrollHeight - clientHeight, this.rows, room.rows, rowHeight, this.rowFactor);
    const column = this.exact?.left === scrollLeft ? this.exact.column
                                                   : this.first(scrollLeft, scrollWidth - clientWidth, this.columns, room.columns, this.cellWidth, this.columnFactor);
    return { row, column, rows: Math.min(Math.ceil(clientHeight / rowHeight) + 1, this.rows - row),
             columns: Math.min(Math.ceil(clientWidth / this.cellWidth) + 1, this.columns - column) };
  }

  /** Shows a row and a column first, as far as there are enough after them. */
  go(row, column) {
    const room = this.room();
    const { clientHeight, clientWidth, scrollHeight, scrollWidth } = this.scroller;
    row = Math.max(0, Math.min(Math.round(row), this.rows - room.rows));
    column = Math.max(0, Math.min(Math.round(column), this.columns - room.columns));
    const place = (index, count, fitting, most, size, factor) =>
      (factor === 1 ? index * size : Math.round((index / Math.max(1, count - fitting)) * most));
    this.scroller.scrollTo(place(column, this.columns, room.columns, scrollWidth - clientWidth, this.cellWidth, this.columnFactor),
                           place(row, this.rows, room.rows, scrollHeight - clientHeight, rowHeight, this.rowFactor));
    this.exact = { row, column, top: this.scroller.scrollTop, left: this.scroller.scrollLeft };
    this.draw();
  }

  pageOf(row, column) {
    return `${Math.floor(row / pageRows)},${this.fields ? 0 : Math.floor(column / pageColumns)}`;
  }

  cell(row, column) {
    const page = this.pages.get(this.pageOf(row, column));
    if (!page) return undefined;
    const text = page[row % pageRows]?.[this.fields ? column : column % pageColumns];
    return text === undefined || !this.quantity ? text : this.quantity.plain(text);
  }

  draw() {
    if (!this.info || this.element.hidden) return;
    const shown = this.view();
    const top = this.rowFactor > 1 ? this.scroller.scrollTop : shown.row * rowHeight;
    const left = this.columnFactor > 1 ? this.scroller.scrollLeft : shown.column * this.cellWidth;
    this.head.replaceChildren(el('span', { class: 'corner', role: 'columnheader' }, this.flat ? (this.info.names[0] ?? '#') : '#'));
    this.head.style.width = this.filler.style.width;
    const shift = `translateX(${left}px)`;
    for (let j = 0; j < shown.columns; ++j) {
      const cell = el('span', { class: 'cell', role: 'columnheader', title: this.title(shown.column + j) }, this.title(shown.column + j));
      cell.style.transform = shift;
      this.head.append(cell);
    }
    const rows = [];
    let asks = false;
    for (let i = 0; i < shown.rows; ++i) {
      const row = el('div', { class: (shown.row + i) % 2 ? 'grid-row odd' : 'grid-row', role: 'row', 'aria-rowindex': shown.row + i + 2 },
                     el('span', { class: 'corner', role: 'rowheader' }, String(shown.row + i)));
      for (let j = 0; j < shown.columns; ++j) {
        const text = this.cell(shown.row + i, shown.column + j);
        asks ||= text === undefined;
        const cell = el('span', { class: text === undefined ? 'cell wait' : 'cell', role: 'gridcell', title: text ?? '' }, text ?? '');
        cell.style.transform = shift;
        row.append(cell);
      }
      rows.push(row);
    }
    this.body.style.transform = `translateY(${top}px)`;
    this.body.replaceChildren(...rows);
    if (asks) this.later();
  }

  async ask() {
    if (!this.info || this.element.hidden) return;
    const shown = this.view();
    const wanted = new Set();
    for (let i = 0; i < shown.rows; i += 1) {
      for (let j = 0; j < shown.columns; j += 1) wanted.add(this.pageOf(shown.row + i, shown.column + j));
    }
    const pages = this.pages;
    this.controller?.abort();
    this.controller = new AbortController();
    const { signal } = this.controller;
    try {
      await Promise.all([...wanted].filter((page) => !pages.has(page)).map(async (page) => {
        const [row, column] = page.split(',').map(Number);
        const answer = await json('api/rows', {
          path: this.slice.path, field: this.slice.field, axes: this.flat ? null : this.slice.axes.join(','),
          at: this.info.shape.length > 0 ? this.slice.at.join(',') : null, row: row * pageRows, rows: pageRows,
          column: this.flat ? null : column * pageColumns, columns: this.flat ? null : pageColumns, v: this.slice.version,
        }, signal);
        pages.set(page, answer.rows);
        for (const old of pages.keys()) {
          if (pages.size <= mostPages) break;
          pages.delete(old);
        }
      }));
      if (pages === this.pages) this.draw();
    } catch (error) {
      if (!aborted(error)) this.fail(error);
    }
  }

  key(event) {
    const page = Math.max(1, this.room().rows - 1);
    const moves = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [page, 0], PageUp: [-page, 0],
                    Home: [-this.rows, 0], End: [this.rows, 0] };
    const move = moves[event.key];
    if (!move || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    const { row, column } = this.view();
    this.go(row + move[0], column + move[1]);
  }

  /** The wheel moves by rows where the filler would move by many more. */
  wheel(event) {
    if (this.rowFactor === 1 || event.ctrlKey || event.shiftKey || event.deltaY === 0) return;
    event.preventDefault();
    this.turned = (this.turned ?? 0) + event.deltaY * [1, rowHeight, rowHeight * this.room().rows][event.deltaMode];
    const rows = Math.trunc(this.turned / rowHeight);
    this.turned -= rows * rowHeight;
    const { row, column } = this.view();
    if (rows !== 0) this.go(row + rows, column);
  }
}
