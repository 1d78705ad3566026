// Tiles of numbers as the server gives them, kept for as long as there is room, so that a change of colours or a way
// back asks for nothing.

import { aborted, address, numbers } from './api.js';

const mostBytes = 192 * 2 ** 20;
const mostRounds = 40;

export class TileStore {
  constructor() {
    this.entries = new Map();  // by address, the last used last
    this.bytes = 0;
    this.decodedLeft = 0;
  }

  /**
   * Calls take(data) now or later, and again when a sampled tile has become a better one. Returns a function that ends
   * the interest. A tile that nobody waits for any more is cancelled.
   */
  want(parameters, take, fail, decode) {
    const url = address('api/tile', parameters);
    let entry = this.entries.get(url);
    if (entry) {
      this.entries.delete(url);
    } else {
      entry = { url, decode, data: null, controller: null, users: new Set(), rounds: 0 };
    }
    this.entries.set(url, entry);
    const user = { take, fail };
    entry.users.add(user);
    if (entry.data) {
      // Later, as with all others: Leaflet does not know the tile yet.
      queueMicrotask(() => entry.users.has(user) && take(entry.data));
      if (entry.data.left > 0) this.load(entry);
    } else {
      this.load(entry);
    }
    return () => {
      entry.users.delete(user);
      if (entry.users.size > 0 || !entry.controller) return;
      entry.controller.abort();
      entry.controller = null;
      if (!entry.data) this.entries.delete(url);
    };
  }

  async load(entry) {
    if (entry.controller) return;
    const controller = new AbortController();
    entry.controller = controller;
    try {
      for (;;) {
        const data = await numbers(entry.url, controller.signal, entry.decode);
        if (entry.controller !== controller) return;
        this.bytes += data.values.byteLength - (entry.data?.values.byteLength ?? 0);
        const before = entry.data?.left ?? Infinity;
        entry.data = data;
        for (const user of [...entry.users]) user.take(data);
        if (data.left === 0 || data.left >= before || ++entry.rounds >= mostRounds) break;
      }
      this.drop();
    } catch (error) {
      if (entry.controller === controller && !entry.data) this.entries.delete(entry.url);
      if (!aborted(error)) {
        for (const user of [...entry.users]) user.fail(error);
      }
    } finally {
      if (entry.controller === controller) entry.controller = null;
    }
  }

  drop() {
    for (const [url, entry] of this.entries) {
      if (this.bytes <= mostBytes) return;
      if (entry.users.size > 0 || entry.controller || !entry.data) continue;
      this.bytes -= entry.data.values.byteLength;
      this.entries.delete(url);
    }
  }

  clear() {
    for (const entry of this.entries.values()) entry.controller?.abort();
    this.entries.clear();
    this.bytes = 0;
  }
}
