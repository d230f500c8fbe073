// Answers on their way to the server. They are kept in the browser until the server has them on
// disk, and each carries a key, so that a lost connection or a closed tab loses and doubles nothing.

import { Refusal, send } from "./api.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15000;
const FINAL = [400, 403, 404, 409, 410, 422];

export class Outbox {
  // `told(state)` is called with "sent", "offline", "refused" and "login" with details.
  constructor(name, told) {
    this.name = name;
    this.told = told;
    this.entries = this.read();
    this.sending = null;
    this.pause = FIRST_PAUSE;
    this.timer = null;
    this.offline = false;
    this.lost = false;
    addEventListener("online", () => this.flush());
  }

  read() {
    try {
      return JSON.parse(localStorage.getItem(this.name)) ?? [];
    } catch {
      return [];
    }
  }

  keep() {
    try {
      if (this.entries.length) localStorage.setItem(this.name, JSON.stringify(this.entries));
      else localStorage.removeItem(this.name);
    } catch {
      // Storage may be off or full: then the answers live as long as this page.
    }
  }

  add(entry) {
    this.entries.push(entry);
    this.keep();
  }

  // Take back an entry that has not been sent; false when it is too late for that.
  take(key) {
    const place = this.entries.findIndex((entry) => entry.key === key);
    if (place < 0 || (this.sending && place === 0)) return false;
    this.entries.splice(place, 1);
    this.keep();
    return true;
  }

  has(key) {
    return this.entries.some((entry) => entry.key === key);
  }

  get leases() {
    return this.entries.map((entry) => entry.lease);
  }

  // Send everything but the newest `but` entries; resolves when done or when it must wait.
  flush(but = 0) {
    clearTimeout(this.timer);
    this.sending ??= this.run(but).finally(() => { this.sending = null; });
    return this.sending;
  }

  async run(but) {
    while (this.entries.length > but) {
      const entry = this.entries[0];
      try {
        await send(entry.path, entry.body);
      } catch (error) {
        if (!(error instanceof Refusal) || !FINAL.includes(error.status)) {
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
  }

  wait(error) {
    if (error instanceof Refusal && error.status === 401) {
      this.told("login", error);
      return;
    }
    this.offline = this.lost = true;
    this.told("offline", error);
    this.timer = setTimeout(() => this.flush(), this.pause);
    this.pause = Math.min(2 * this.pause, LONGEST_PAUSE);
  }

  // The page is going away: hand over what is there, without waiting for the result.
  leave() {
    for (const entry of this.entries) {
      send(entry.path, entry.body, { keepalive: true }).catch(() => {});
    }
  }
}
