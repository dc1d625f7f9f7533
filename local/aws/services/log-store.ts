/** The newest log lines of functions, by log group. */
export interface StoredLine {
  readonly eventId: string;
  readonly timestamp: number;
  readonly message: string;
}

/** The limit per group. A machine writes some thousand lines on a busy day. */
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

  /** The lines, oldest first; undefined when the group does not exist. */
  lines(group: string): readonly StoredLine[] | undefined {
    return this.#groups.get(group);
  }

  /** Creates an empty group. On AWS, too, a group exists before its first line. */
  create(group: string): void {
    if (!this.#groups.has(group)) this.#groups.set(group, []);
  }
}
