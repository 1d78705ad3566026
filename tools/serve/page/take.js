// Taking away what is shown: the picture as drawn, its elements as files, and lines that give the same selection.

import { address } from './api.js';
import { byId, el } from './dom.js';

function save(name, link) {
  const anchor = el('a', { href: link, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
}

function saveText(name, text, type) {
  const link = URL.createObjectURL(new Blob([text], { type }));
  save(name, link);
  setTimeout(() => URL.revokeObjectURL(link), 10000);
}

/** A selection as NumPy writes it: [{start, count, whole, one}] for each dimension. */
export function sliceText(parts) {
  return parts.map(({ start, count, whole, one }) => (one ? String(start) : whole ? ':' : `${start}:${start + count}`)).join(', ');
}

/** Text as one word for a POSIX shell. */
export const shellWord = (text) => (/^[\w./:@%+=-]+$/.test(text) && !text.startsWith('-') ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** Lines that read a selection, for a person in the folder that is served. */
export function readLines(path, selection) {
  const quoted = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
  return {
    Shell: `tessera get ${shellWord(path)} ${shellWord(selection)}`,
    Python: `tessera.open(${quoted(path)})[${selection}]`,
    'C++': `tessera::read_selection(*tessera::open_source(${quoted(path)}), ${quoted(selection)})`,
  };
}

export class Take {
  /** what(): {name, path, parts, picture(): canvas or null, profile: {line, name} or null}. */
  constructor(what) {
    this.what = what;
    this.dialog = byId('take');
    byId('save').addEventListener('click', () => this.show());
    this.dialog.addEventListener('click', (event) => event.target === this.dialog && this.dialog.close());
  }

  show() {
    const given = this.what();
    const { name, path, parts } = given;
    const file = name.replace(/[^\w.-]+/g, '_') || 'array';
    const selection = sliceText(parts);
    const button = (text, work) => el('button', { type: 'button', class: 'quiet', onclick: work }, text);
    const files = [];
    const region = { path: given.from, field: given.field, start: parts.map((part) => part.start).join(','), count: parts.map((part) => part.count).join(',') };
    const count = parts.reduce((product, part) => product * part.count, 1);
    const long = parts.filter((part) => part.count !== 1).length;
    if (given.picture) files.push(button('Picture, .png', () => this.savePicture(file, given)));
    files.push(button('Elements, .npy', () => this.saveElements(`${file}.npy`, { ...region, as: 'npy' })));
    if (long <= 2 && count <= 1e6) files.push(button('Elements, .csv', () => this.saveElements(`${file}.csv`, { ...region, as: 'csv' })));
    if (given.profile) files.push(button('Profile, .csv', () => saveText(`${file}-profile.csv`, given.profile, 'text/csv')));
    const lines = Object.entries(readLines(path, selection)).map(([language, line]) => {
      const copy = button('Copy', async () => {
        try {
          await navigator.clipboard.writeText(line);
          copy.textContent = 'Copied';
        } catch {
          const range = document.createRange();
          range.selectNodeContents(code);
          getSelection().removeAllRanges();
          getSelection().addRange(range);
          copy.textContent = 'Selected';
        }
      });
      copy.setAttribute('aria-label', `Copy the line for ${language}`);
      const code = el('code', { 'data-language': language }, line);
      return el('div', { class: 'line-of' }, el('span', {}, language), code, copy);
    });
    this.note = el('p', { class: 'sub', role: 'status' });
    byId('take-content').replaceChildren(
      el('p', { class: 'sub' }, `${count.toLocaleString('en')} elements as they are stored: [${selection}]`),
      el('div', { class: 'files' }, ...files), this.note,
      ...(given.field ? [] : [el('h3', {}, 'The same in'), ...lines]));
    this.dialog.showModal();
  }

  /** Asks first, so that a refusal is read here and not in a file. */
  async saveElements(name, parameters) {
    this.note.textContent = 'Reading…';
    try {
      const response = await fetch(address('api/selection', parameters));
      if (!response.ok) throw new Error((await response.json()).message);
      const link = URL.createObjectURL(await response.blob());
      save(name, link);
      setTimeout(() => URL.revokeObjectURL(link), 10000);
      this.note.textContent = `${name} is saved.`;
    } catch (error) {
      this.note.textContent = error.message;
    }
  }

  async savePicture(file, given) {
    const canvas = given.picture();
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
    const link = URL.createObjectURL(blob);
    save(`${file}.png`, link);
    setTimeout(() => URL.revokeObjectURL(link), 10000);
    this.note.textContent = `${file}.png is saved.`;
  }
}
