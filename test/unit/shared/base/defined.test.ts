import { expect, test } from "vitest";
import { defined } from "#shared/base/defined.ts";

test("only undefined fields are left out", () => {
  const fields = { namespace: undefined, name: "web", count: 0, empty: "", no: false, none: null };
  expect(Object.entries(defined(fields))).toEqual(
    Object.entries({ name: "web", count: 0, empty: "", no: false, none: null }),
  );
});
