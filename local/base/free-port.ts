import { once } from "node:events";
import { createServer } from "node:net";

/**
 * A TCP port of 127.0.0.1 that is free now. Another program may take it first, so callers must be ready to try again.
 */
export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("The system gave no TCP port on 127.0.0.1");
  return address.port;
}
