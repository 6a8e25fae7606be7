// The line to the agent: JSON objects, one a line. See README.md.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.Win32.SafeHandles;

namespace Standin
{
    // What a program answered.
    public sealed class Answer
    {
        public int Exit { get; set; }
        public string Stdout { get; set; }
        public string Stderr { get; set; }
    }

    // One thing to run.
    public sealed class Request
    {
        public long Id;
        public string User = "SYSTEM";
        public string Kind = "";
        public string Text = "";
        public string Program = "";
        public string[] Args = Array.Empty<string>();
    }

    // The agent at the other end of standard input and output. It is one for
    // the whole process, like the streams themselves.
    public static class Channel
    {
        static Stream output;
        static readonly object gate = new object();
        static long lastCall;
        static readonly ConcurrentDictionary<long, TaskCompletionSource<Answer>> calls = new ConcurrentDictionary<long, TaskCompletionSource<Answer>>();

        [DllImport("libc", SetLastError = true)] static extern int dup(int fd);
        [DllImport("libc", SetLastError = true)] static extern int dup2(int from, int to);
        [DllImport("libc", SetLastError = true, CharSet = CharSet.Ansi)] static extern int open(string path, int flags);

        // Takes standard output for the protocol: what anything else in the
        // process writes there goes nowhere.
        public static void Open()
        {
            int mine = dup(1);
            int nowhere = open("/dev/null", 1);
            if (mine < 0 || nowhere < 0 || dup2(nowhere, 1) < 0) throw new IOException("standard output can't be taken");
            output = new FileStream(new SafeFileHandle((IntPtr)mine, true), FileAccess.Write, 1);
            Console.SetOut(new Routed(true));
            Console.SetError(new Routed(false));
        }

        public static void Send(Dictionary<string, object> message)
        {
            byte[] line = Encoding.UTF8.GetBytes(JsonSerializer.Serialize(message) + "\n");
            lock (gate)
            {
                output.Write(line, 0, line.Length);
                output.Flush();
            }
        }

        // Runs a program at the agent and waits for its end.
        public static Answer Call(string program, string[] args)
        {
            long id = Interlocked.Increment(ref lastCall);
            var done = new TaskCompletionSource<Answer>(TaskCreationOptions.RunContinuationsAsynchronously);
            calls[id] = done;
            Send(new Dictionary<string, object> { ["call"] = id, ["program"] = program, ["args"] = args ?? Array.Empty<string>() });
            return done.Task.GetAwaiter().GetResult();
        }

        // Reads until standard input ends. Requests are started, answers handed over.
        public static void Read(TextReader input, Action<Request> start, Action<long> cancel)
        {
            string line;
            while ((line = input.ReadLine()) != null)
            {
                if (line.Trim().Length == 0) continue;
                using (JsonDocument document = JsonDocument.Parse(line))
                {
                    JsonElement root = document.RootElement;
                    if (root.TryGetProperty("call", out JsonElement call))
                    {
                        if (calls.TryRemove(call.GetInt64(), out TaskCompletionSource<Answer> done))
                            done.TrySetResult(new Answer { Exit = root.TryGetProperty("exit", out JsonElement e) ? e.GetInt32() : 0, Stdout = Text(root, "stdout"), Stderr = Text(root, "stderr") });
                        continue;
                    }
                    var request = new Request { Id = root.GetProperty("id").GetInt64(), User = Text(root, "user"), Kind = Text(root, "kind"), Text = Text(root, "text"), Program = Text(root, "program") };
                    if (root.TryGetProperty("cancel", out JsonElement stop) && stop.ValueKind == JsonValueKind.True)
                    {
                        cancel(request.Id);
                        continue;
                    }
                    if (root.TryGetProperty("args", out JsonElement args) && args.ValueKind == JsonValueKind.Array)
                    {
                        var list = new List<string>();
                        foreach (JsonElement a in args.EnumerateArray()) list.Add(a.GetString());
                        request.Args = list.ToArray();
                    }
                    start(request);
                }
            }
        }

        static string Text(JsonElement root, string name)
        {
            return root.TryGetProperty(name, out JsonElement e) && e.ValueKind == JsonValueKind.String ? e.GetString() : "";
        }
    }

    // Where the thread's request prints. Each request has a thread of its own.
    public static class Sink
    {
        [ThreadStatic] public static Action<string, string> Current;

        public static void Write(string stream, string text)
        {
            if (string.IsNullOrEmpty(text)) return;
            Action<string, string> to = Current;
            if (to != null) to(stream, text);
        }
    }

    // [Console]::Out and [Console]::Error of the request on this thread.
    sealed class Routed : TextWriter
    {
        readonly string stream;
        public Routed(bool stdout) { stream = stdout ? "stdout" : "stderr"; NewLine = "\r\n"; }
        public override Encoding Encoding => Encoding.UTF8;
        public override void Write(char c) { Sink.Write(stream, c.ToString()); }
        public override void Write(string s) { Sink.Write(stream, s); }
        public override void WriteLine(string s) { Sink.Write(stream, s + NewLine); }
    }
}
