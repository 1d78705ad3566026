// The tree of groups and arrays: opened level by level, and used by arrow keys as trees are.

import { json, known } from './api.js';
import { byId, el, settled, shapeText, shortLength, typeText } from './dom.js';

const root = byId('tree');

export class Tree {
  constructor(choose) {
    this.choose = choose;
    this.items = new Map();  // by path
    root.addEventListener('keydown', (event) => this.key(event));
    const later = settled(() => this.search(byId('search').value.trim()), 180);
    byId('search').addEventListener('input', later);
    byId('search').addEventListener('keydown', (event) => {
      if (event.key === 'Enter' || event.key === 'ArrowDown') byId('found').querySelector('button')?.focus();
      if (event.key === 'Escape') {
        byId('search').value = '';
        this.search('');
      }
    });
    byId('found').addEventListener('keydown', (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const all = [...byId('found').querySelectorAll('button')];
      if (!step || all.length === 0) return;
      event.preventDefault();
      (all[all.indexOf(document.activeElement) + step] ?? byId('search')).focus();
    });
  }

  async load() {
    const node = await json('api/tree', { path: '' });
    root.replaceChildren();
    if (node.children.length === 0 && node.kind === 'group') {
      root.append(el('li', { class: 'empty', role: 'none' }, 'Nothing is here.'));
    } else if (node.children.length === 0) {
      // A server of one array shows just that.
      root.append(this.item({ name: 'array', path: '', kind: node.kind, format: node.format }, 1));
    } else {
      root.append(...node.children.map((child) => this.item(child, 1)));
    }
    root.querySelector('[role=treeitem]')?.setAttribute('tabindex', '0');
    if (node.children.length === 1 && node.children[0].kind === 'group') await this.open(node.children[0].path);
  }

  /** Shows what has a text in its path, in place of the tree; the tree again without one. */
  async search(text) {
    const found = byId('found');
    this.wanted = text;
    found.hidden = text === '';
    root.hidden = text !== '';
    if (text === '') return;
    try {
      const answer = await json('api/find', { name: text });
      if (this.wanted !== text) return;
      answer.found.forEach(known);
      const items = answer.found.map(({ path }) => el('li', {}, el('button', { type: 'button', class: 'row found', title: path, onclick: () => this.choose(path) }, path)));
      if (items.length === 0) items.push(el('li', { class: 'empty' }, `Nothing has “${text}” in its name.`));
      if (!answer.all) items.push(el('li', { class: 'empty' }, 'There is more: type more of the name.'));
      found.replaceChildren(...items);
    } catch (error) {
      found.replaceChildren(el('li', { class: 'empty' }, error.message));
    }
  }

  item(node, level) {
    const group = node.kind === 'group';
    const label = el('span', { class: 'label' }, node.name || 'array');
    const fact = group || !node.shape ? null : el('span', { class: 'fact' }, node.shape.length ? node.shape.map(shortLength).join('×') : 'scalar');
    const row = el('div', { class: 'row', title: node.error ?? (node.shape ? `${node.name}: ${shapeText(node.shape)} of ${typeText(node.dtype)}` : node.name) },
                   el('span', { class: group ? 'twist' : 'dot', 'aria-hidden': 'true' }), label, fact);
    row.style.paddingLeft = `${0.5 + 0.85 * (level - 1)}rem`;
    const item = el('li', { role: 'treeitem', tabindex: '-1', 'aria-level': level, 'aria-expanded': group ? 'false' : null,
                            'aria-selected': 'false' }, row);
    item.node = node;
    item.level = level;
    if (node.error) item.classList.add('broken');
    row.addEventListener('click', () => {
      this.focus(item);
      this.activate(item);
    });
    this.items.set(node.path, item);
    known(node);
    return item;
  }

  activate(item) {
    if (item.node.kind !== 'group') {
      this.choose(item.node.path);
      return;
    }
    if (item.getAttribute('aria-expanded') === 'true') {
      this.close(item);
    } else {
      this.open(item.node.path);
    }
    this.choose(item.node.path);
  }

  async open(path) {
    const item = this.items.get(path);
    if (!item || item.node.kind !== 'group') return;
    item.setAttribute('aria-expanded', 'true');
    if (item.list) {
      item.list.hidden = false;
      return;
    }
    item.list = el('ul', { role: 'group' });
    item.append(item.list);
    try {
      const node = await json('api/tree', { path });
      item.list.append(...node.children.map((child) => this.item(child, item.level + 1)));
      if (node.children.length === 0) item.list.append(el('li', { class: 'empty', role: 'none' }, 'empty'));
    } catch (error) {
      item.list.append(el('li', { class: 'empty', role: 'none' }, error.message));
    }
  }

  close(item) {
    item.setAttribute('aria-expanded', 'false');
    if (item.list) item.list.hidden = true;
  }

  /** Opens the groups above a path and marks it. */
  async select(path) {
    const parts = path.split('/');
    for (let k = 1; k < parts.length; ++k) {
      const above = parts.slice(0, k).join('/');
      const item = this.items.get(above);
      if (item && !item.list) await this.open(above);
    }
    for (const item of root.querySelectorAll('[aria-selected=true]')) item.setAttribute('aria-selected', 'false');
    const item = this.items.get(path);
    if (!item) return;
    item.setAttribute('aria-selected', 'true');
    this.rove(item);
    item.firstChild.scrollIntoView({ block: 'nearest' });
  }

  rove(item) {
    for (const other of root.querySelectorAll('[tabindex="0"]')) other.setAttribute('tabindex', '-1');
    item.setAttribute('tabindex', '0');
  }

  focus(item) {
    if (!item) return;
    this.rove(item);
    item.focus();
  }

  key(event) {
    const item = event.target.closest('[role=treeitem]');
    if (!item || event.altKey || event.ctrlKey || event.metaKey) return;
    const shown = [...root.querySelectorAll('[role=treeitem]')].filter((other) => other.offsetParent !== null);
    const at = shown.indexOf(item);
    const open = item.getAttribute('aria-expanded') === 'true';
    switch (event.key) {
      case 'ArrowDown': this.focus(shown[at + 1]); break;
      case 'ArrowUp': this.focus(shown[at - 1]); break;
      case 'Home': this.focus(shown[0]); break;
      case 'End': this.focus(shown.at(-1)); break;
      case 'ArrowRight':
        if (item.node.kind === 'group' && !open) this.open(item.node.path);
        else if (open) this.focus(item.list?.querySelector('[role=treeitem]'));
        break;
      case 'ArrowLeft':
        if (open) this.close(item);
        else this.focus(item.parentElement.closest('[role=treeitem]'));
        break;
      case 'Enter':
      case ' ': this.activate(item); break;
      default: return;
    }
    event.preventDefault();
  }
}
