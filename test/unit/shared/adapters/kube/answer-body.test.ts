import { expect, test } from "vitest";
import { AnswerBody } from "#shared/adapters/kube/answer-body.ts";

test.each([1, 7, 65_536, 65_537, 200_000])("the body is the answer that was sent, in pieces of %i bytes", (size) => {
  const text = "é€𝄞x".repeat(15_000);
  const bytes = Buffer.from(text);
  const body = new AnswerBody();
  const wrong: number[] = [];
  let pieces = 0;
  for (let at = 0; at < bytes.length; at += size) {
    const piece = Buffer.from(bytes.subarray(at, at + size));
    if (body.add(piece) !== Math.min(at + size, bytes.length)) wrong.push(at);
    // The HTTP client may use its memory again.
    piece.fill("!");
    pieces += 1;
  }
  expect(wrong).toEqual([]);
  expect(body.pieces).toBe(pieces);
  expect(body.text()).toBe(text);
});

test("an empty answer has an empty body", () => {
  const body = new AnswerBody();
  expect(body.add(Buffer.alloc(0))).toBe(0);
  expect([body.text(), body.pieces]).toEqual(["", 1]);
});
