/** Where a field may be `undefined`, it may be left out; the others stay what they are. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** The fields that have a value: `{ ...defined({ namespace }) }` has no `namespace` where there is none. */
export function defined<T extends object>(fields: T): Defined<T> {
  // Asked for several times with each request: pairs in between would take a multiple of the time.
  const found: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) {
    const value = fields[name as keyof T];
    if (value !== undefined) found[name] = value;
  }
  return found as Defined<T>;
}
