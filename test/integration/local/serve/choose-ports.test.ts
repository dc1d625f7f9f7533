import { once } from "node:events";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import { requireFreePorts, withLastingPorts } from "#local/serve/choose-ports.ts";

test("ports that the user does not choose are free, and outside the range of outgoing connections", async () => {
  const chosen = await Promise.all(Array.from({ length: 20 }, () => withLastingPorts({})));
  for (const ports of chosen) {
    expect(new Set(Object.values(ports)).size).toBe(3);
    for (const port of Object.values(ports)) {
      expect(port).toBeGreaterThanOrEqual(20_000);
      expect(port).toBeLessThan(32_768);
    }
  }
});

test("a chosen port stays, and a taken port is reported with the flag that chooses another", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { readonly port: number };
  try {
    const ports = await withLastingPorts({ git: port });
    expect(ports.git).toBe(port);
    await expect(requireFreePorts(ports)).rejects.toThrow(
      `port ${port} of 127.0.0.1 is in use by another process (--git-port)`,
    );
    expect(await withLastingPorts(ports)).toEqual(ports);
  } finally {
    server.close();
  }
});
