/** Lines that functions have logged, by log group; only the newest are kept. */
export interface StoredLine {
  readonly eventId: string;
  readonly timestamp: number;
  readonly message: string;
}

/** Of a group; a busy day of a machine is some thousand. */
const mostLines = 20_000;

export class LogStore {
  readonly #groups = new Map<string, StoredLine[]>();
  #next = 1;

  put(group: string, message: string, at: Date): void {
    const lines = this.#groups.get(group) ?? [];
    this.#groups.set(group, lines);
    lines.push({ eventId: String(this.#next++).padStart(20, "0"), timestamp: at.getTime(), message });
    if (lines.length > mostLines) lines.splice(0, lines.length - mostLines);
  }

  /** The oldest first; undefined when there is no such group. */
  lines(group: string): readonly StoredLine[] | undefined {
    return this.#groups.get(group);
  }

  /** There is a group before there is a line. */
  create(group: string): void {
    if (!this.#groups.has(group)) this.#groups.set(group, []);
  }
}
