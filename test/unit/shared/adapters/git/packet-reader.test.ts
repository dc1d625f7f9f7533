import { describe, expect, test } from "vitest";
import { type Packet, PacketReader, packetLine } from "#shared/adapters/git/packet-reader.ts";

const wire = `${packetLine("version 2\n")}0001${packetLine("")}${packetLine("é")}00020000`;
const packets = ["version 2\n", "delimiter", "", "é", "end", "flush"];

/** Copies each packet, because the reader's result is valid only until the next chunk. */
function read(reader: PacketReader, chunk: Buffer): string[] {
  return Array.from(reader.read(chunk), (packet: Packet) => packet.toString());
}

describe("packets", () => {
  test.each([1, 2, 3, 4, 5, 7, 13, 100])("packets are the same in chunks of %i bytes", (size) => {
    const reader = new PacketReader();
    const bytes = Buffer.from(wire);
    const found: string[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      const chunk = Buffer.from(bytes.subarray(at, at + size));
      found.push(...read(reader, chunk));
      // The sender may use its memory again.
      chunk.fill("!");
    }
    expect(found).toEqual(packets);
    expect(() => reader.end()).not.toThrow();
  });

  test("a packet is complete when its last byte is there", () => {
    const reader = new PacketReader();
    expect(read(reader, Buffer.from("0005"))).toEqual([]);
    expect(read(reader, Buffer.from("a"))).toEqual(["a"]);
    expect(() => reader.end()).not.toThrow();
  });

  test("a packet begins with its length in bytes", () => {
    expect(packetLine("é")).toBe("0006é");
    expect(packetLine("x".repeat(300))).toMatch(/^0130x{300}$/);
  });

  test("the length of a packet may have capital letters", () => {
    expect(read(new PacketReader(), Buffer.from(`000A${"x".repeat(6)}0000`))).toEqual(["xxxxxx", "flush"]);
  });
});

describe("bytes that are not a packet are refused", () => {
  test.each<[string, Buffer, string]>([
    ["a length of three", Buffer.from("0003"), "the git server sent a packet of length 3; check the git server"],
    ["a length that is no number", Buffer.from("00g0"), `the git server sent "00g0" as a packet's length`],
    ["a web page", Buffer.from("<html></html>"), `the git server sent "<htm" as a packet's length`],
    ["bytes", Buffer.alloc(8, 0xff), `the git server sent "ÿÿÿÿ" as a packet's length`],
  ])("bytes that are not a packet are refused: %s", (_what, bytes, message) => {
    expect(() => read(new PacketReader(), bytes)).toThrow(
      expect.objectContaining({
        code: "GitOperationFailed",
        retry: "transient",
        message: expect.stringContaining(message),
      }),
    );
  });

  test.each(["00", "0008", "0008xxx"])("an answer that ends with %s is incomplete", (rest) => {
    const reader = new PacketReader();
    expect(read(reader, Buffer.from(`${packetLine("a")}${rest}`))).toEqual(["a"]);
    expect(() => reader.end()).toThrow(/^the git server's answer is incomplete; check the git server/);
  });
});
