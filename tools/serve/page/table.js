// Tables as a grid that scrolls over any number of rows: what is in view is asked for in pages of rows and columns.

import { aborted, json } from './api.js';
import { el, settled } from './dom.js';

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
    new ResizeObserver(() => this.draw()).observe(element);
  }

  /** `slice`: {path, axes, at, version}; a structure has its fields as columns. */
  show(info, slice) {
    this.info = info;
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
    this.scroller.scrollTo(0, 0);
    this.scroller.setAttribute('aria-rowcount', this.rows + 1);
    this.scroller.setAttribute('aria-colcount', this.columns + 1);
    this.draw();
  }

  title(column) {
    if (this.fields) return this.info.fields[column];
    return this.flat ? (this.info.label ?? 'value') : String(column);
  }

  view() {
    const { scrollTop, scrollLeft, clientHeight, clientWidth } = this.scroller;
    const row = Math.min(Math.floor((scrollTop * this.rowFactor) / rowHeight), Math.max(0, this.rows - 1));
    const column = Math.min(Math.floor((scrollLeft * this.columnFactor) / this.cellWidth), Math.max(0, this.columns - 1));
    return { row, column, rows: Math.min(Math.ceil(clientHeight / rowHeight) + 1, this.rows - row),
             columns: Math.min(Math.ceil(clientWidth / this.cellWidth) + 1, this.columns - column) };
  }

  pageOf(row, column) {
    return `${Math.floor(row / pageRows)},${this.fields ? 0 : Math.floor(column / pageColumns)}`;
  }

  cell(row, column) {
    const page = this.pages.get(this.pageOf(row, column));
    if (!page) return undefined;
    return page[row % pageRows]?.[this.fields ? column : column % pageColumns];
  }

  draw() {
    if (!this.info || this.element.hidden) return;
    const shown = this.view();
    const top = this.rowFactor > 1 ? this.scroller.scrollTop : shown.row * rowHeight;
    const left = this.columnFactor > 1 ? this.scroller.scrollLeft : shown.column * this.cellWidth;
    this.head.replaceChildren(el('span', { class: 'corner', role: 'columnheader' }, this.flat ? (this.info.names[0] ?? '') : ''));
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
          path: this.slice.path, axes: this.flat ? null : this.slice.axes.join(','),
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
    const page = this.scroller.clientHeight - 2 * rowHeight;
    const moves = { ArrowDown: [rowHeight, 0], ArrowUp: [-rowHeight, 0], ArrowRight: [0, this.cellWidth], ArrowLeft: [0, -this.cellWidth],
                    PageDown: [page, 0], PageUp: [-page, 0], Home: [-Infinity, 0], End: [Infinity, 0] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    const height = this.filler.offsetHeight + rowHeight;
    const top = this.scroller.scrollTop + (Number.isFinite(move[0]) ? move[0] / this.rowFactor : move[0] > 0 ? height : -height);
    this.scroller.scrollTo(this.scroller.scrollLeft + move[1] / this.columnFactor, top);
  }
}
