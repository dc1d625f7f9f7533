/** A field that may be `undefined` becomes optional; other fields are unchanged. */
type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** The fields that have a value: `{ ...defined({ namespace }) }` has no `namespace` when it is undefined. */
export function defined<T extends object>(fields: T): Defined<T> {
  // A loop, because this runs several times in each request. Intermediate pairs would take several times as long.
  const found: Record<string, unknown> = {};
  for (const name of Object.keys(fields)) {
    const value = fields[name as keyof T];
    if (value !== undefined) found[name] = value;
  }
  return found as Defined<T>;
}
