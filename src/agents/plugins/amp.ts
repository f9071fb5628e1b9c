// @i-know-the-amp-plugin-api-is-wip-and-very-experimental-right-now
// Tells 'oxundo hook amp' where each prompt's turn begins and ends.
// Made by 'oxundo init amp'; 'oxundo uninstall amp' takes it away.
import { spawnSync } from "node:child_process"

// A tool's call does not name its thread.
let thread: any

const call = (event: string, e: any) => {
  try {
    thread = e?.thread?.id ?? thread
    const payload = {
      session_id: thread,
      turn_id: e?.id,
      prompt: typeof e?.message === "string" ? e.message : undefined,
      status: e?.status,
      tool: e?.tool,
      call_id: e?.toolUseID,
      args: { path: e?.input?.path },
    }
    spawnSync("oxundo", ["hook", "amp", event], {
      input: JSON.stringify(payload),
      stdio: ["pipe", "ignore", "ignore"],
      timeout: 30000,
    })
  } catch {}
}

export default function (amp: any) {
  amp.on("agent.start", async (e: any) => {
    call("begin", e)
    return {}
  })
  amp.on("tool.call", async (e: any) => {
    call("call", e)
    return { action: "allow" }
  })
  amp.on("tool.result", async (e: any) => {
    call("called", e)
  })
  amp.on("agent.end", async (e: any) => {
    call("end", e)
  })
}
