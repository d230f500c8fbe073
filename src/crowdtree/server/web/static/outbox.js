// Answers on their way to the server. The last one is held back for a while: until it is sent, an
// undo just discards it. All are kept in the browser until the server has them on disk, and each
// carries a key, so that a lost connection or a closed tab loses and doubles nothing.

import { Refusal, send } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15000;
const FINAL = [400, 403, 404, 409, 410, 422];

export class Outbox {
  // `told(state)` is called with "released", "sent", "offline", "refused" and "login" with details.
  constructor(name, told) {
    this.name = name;
    this.told = told;
    this.entries = this.read(); // being sent, in order: it is too late to undo them
    this.pending = null; // the last answer with what the page showed, while it can be undone
    this.sending = null;
    this.pause = FIRST_PAUSE;
    this.timer = null;
    this.offline = false;
    this.lost = false;
    addEventListener("online", () => this.send());
  }

  read() {
    try {
      return JSON.parse(localStorage.getItem(this.name)) ?? [];
    } catch {
      return [];
    }
  }

  // Everything that the server does not have, oldest first.
  get unsent() {
    return this.pending ? [...this.entries, this.pending.entry] : this.entries;
  }

  get leases() {
    return this.unsent.map((entry) => entry.lease);
  }

  keep() {
    try {
      if (this.unsent.length) localStorage.setItem(this.name, JSON.stringify(this.unsent));
      else localStorage.removeItem(this.name);
    } catch {
      // Storage may be off or full: then the answers live as long as this page.
    }
  }

  // Hold an answer back, and send the one before it.
  hold(entry, shown) {
    this.release();
    this.pending = { entry, ...shown };
    this.keep();
    return this.send();
  }

  // Discard the answer that is held back, and return it; null when there is none.
  discard() {
    const { pending } = this;
    this.pending = null;
    this.keep();
    return pending;
  }

  release() {
    if (!this.pending) return;
    this.entries.push(this.pending.entry);
    this.pending = null;
    this.told("released");
  }

  // Send everything, including the answer that is held back.
  flush() {
    this.release();
    return this.send();
  }

  // Send everything else; resolves when done or when it must wait.
  async send() {
    clearTimeout(this.timer);
    if (this.entries.length) await (this.sending ??= this.run());
  }

  async run() {
    while (this.entries.length) {
      const entry = this.entries[0];
      try {
        await send(entry.path, entry.body, { keepalive: true });
      } catch (error) {
        if (!(error instanceof Refusal) || !FINAL.includes(error.status)) {
          this.sending = null;
          this.wait(error);
          return;
        }
        this.told("refused", error);
      }
      this.entries.shift();
      this.keep();
      this.pause = FIRST_PAUSE;
      this.offline = false;
      const back = this.lost && !this.entries.length; // everything that was stuck has arrived
      if (back) this.lost = false;
      this.told("sent", { entry, back });
    }
    this.sending = null;
  }

  wait(error) {
    if (error instanceof Refusal && error.status === 401) {
      this.told("login", error);
      return;
    }
    this.offline = this.lost = true;
    this.told("offline", error);
    this.timer = setTimeout(() => this.send(), this.pause);
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
  }

  // The page is going away: hand over what is there, without waiting for the result.
  leave() {
    this.release();
    for (const entry of this.entries) {
      send(entry.path, entry.body, { keepalive: true }).catch(() => {});
    }
  }
}
