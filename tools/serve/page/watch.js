// Looks whether what is shown is still what is stored, and whether the server is still there.

import { aborted, json } from './api.js';

const pause = 4000;

export class Watch {
  /** `shown()`: {path, node, version, tells} or null; `events`: changed(), gone(message), lost(), back(). */
  constructor(shown, events) {
    this.shown = shown;
    this.events = events;
    this.lost = false;
    setInterval(() => this.look(), pause);
    document.addEventListener('visibilitychange', () => this.look());
  }

  async look() {
    const what = this.shown();
    if (what === null || document.hidden || this.looking) return;
    this.looking = true;
    try {
      const now = await json('api/version', { path: what.path });
      if (this.lost) {
        this.lost = false;
        this.events.back();
      }
      if (this.shown()?.path !== what.path || this.shown()?.version !== what.version) return;
      if (now.node !== what.node || (what.tells && now.version !== null && now.version !== what.version)) this.events.changed();
    } catch (error) {
      if (aborted(error)) return;
      if (error.status === 0) {
        if (!this.lost) this.events.lost();
        this.lost = true;
      } else if (error.status === 404) {
        this.events.gone();
      }
    } finally {
      this.looking = false;
    }
  }
}
