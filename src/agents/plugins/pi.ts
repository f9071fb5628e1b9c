// Tells 'oxundo hook pi' where each prompt's turn begins and ends.
// Made by 'oxundo init pi'; 'oxundo uninstall pi' takes it away.
import { spawnSync } from "node:child_process"

export default function (pi: any) {
  let prompt: string | undefined
  // How its last answer ended: "aborted" after Escape.
  const outcome = (event: any) => event?.messages?.findLast?.((message: any) => message?.role === "assistant")?.stopReason
  const call = (event: string, ctx: any, status?: string, tool: any = undefined) => {
    try {
      const session = ctx?.sessionManager
      const payload = {
        session_id: session?.getSessionId?.() ?? session?.getSessionFile?.() ?? String(process.pid),
        session_file: session?.getSessionFile?.(),
        prompt,
        model: ctx?.model?.id,
        cwd: ctx?.cwd,
        status,
        tool: tool?.toolName,
        call_id: tool?.toolCallId,
        args: { path: tool?.input?.path ?? tool?.args?.path },
      }
      spawnSync("oxundo", ["hook", "pi", event], {
        input: JSON.stringify(payload),
        stdio: ["pipe", "ignore", "ignore"],
        timeout: 30000,
      })
    } catch {}
  }
  pi.on("before_agent_start", async (event: any) => {
    prompt = event?.prompt
  })
  pi.on("agent_start", async (_event: any, ctx: any) => call("begin", ctx))
  pi.on("tool_execution_start", async (event: any, ctx: any) => call("call", ctx, undefined, event))
  pi.on("tool_execution_end", async (event: any, ctx: any) => call("called", ctx, undefined, event))
  pi.on("agent_end", async (event: any, ctx: any) => call("end", ctx, outcome(event)))
  pi.on("session_shutdown", async (event: any, ctx: any) => {
    const goesOn = ["new", "resume", "fork"].includes(event?.reason)
    // Where extensions are loaded anew the session goes on.
    if (event?.reason !== "reload") call("gone", ctx, goesOn ? "resume" : undefined)
  })
}
