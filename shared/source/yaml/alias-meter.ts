/**
 * The characters that aliases may add to one document when they are expanded. js-yaml shares the referenced nodes. A
 * bomb therefore parses in milliseconds, and explodes when the object is written as JSON.
 */
export const maxAliasExpansion = 10_000_000;

/** The problem of an alias. */
export type AliasProblem = "contains itself" | "expands too far";

/** Follows the nodes of one document and computes how many characters its aliases add, without expanding them. */
export class AliasMeter {
  readonly #sizes = new Map<string, number | "open">();
  readonly #open: { readonly anchor: string | undefined; size: number }[] = [];
  #expanded = 0;

  /** The characters that the aliases have added so far. */
  get expanded(): number {
    return this.#expanded;
  }

  /** Called where a map or a list begins. */
  enter(anchor: string | undefined): void {
    if (anchor !== undefined) this.#sizes.set(anchor, "open");
    this.#open.push({ anchor, size: 1 });
  }

  scalar(anchor: string | undefined, length: number): void {
    if (anchor !== undefined) this.#sizes.set(anchor, length + 1);
    this.#grow(length + 1);
  }

  alias(name: string): AliasProblem | undefined {
    const size = this.#sizes.get(name) ?? 0;
    if (size === "open") return "contains itself";
    this.#expanded += size;
    if (this.#expanded > maxAliasExpansion) return "expands too far";
    this.#grow(size);
    return undefined;
  }

  /** Called where a map, a list or the document ends; returns false for the document. */
  leave(): boolean {
    const node = this.#open.pop();
    if (node === undefined) return false;
    if (node.anchor !== undefined) this.#sizes.set(node.anchor, node.size);
    this.#grow(node.size);
    return true;
  }

  #grow(size: number): void {
    const parent = this.#open.at(-1);
    if (parent !== undefined) parent.size += size;
  }
}
