// A way to a server, which can be closed and opened.

import net from "node:net";

export async function relayTo(url) {
  const sockets = new Set();
  let closed = false;
  const server = net.createServer((near) => {
    if (closed) return near.destroy();
    const far = net.connect(Number(new URL(url).port), "127.0.0.1");
    for (const [socket, other] of [[near, far], [far, near]]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => { sockets.delete(socket); other.destroy(); });
      socket.pipe(other);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = () => { for (const socket of sockets) socket.destroy(); };
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => { closed = true; cut(); },
    open: () => { closed = false; },
    end: () => { server.close(); cut(); },
  };
}
