// Requests of the agent, each on a thread of its own.
using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading;

namespace Standin
{
    public static class Server
    {
        static Engine engine;
        static string c;
        static Hashtable sessions;

        // What belongs to no request goes to the console.
        public static readonly Action<string, string> Log = (stream, text) =>
        {
            byte[] b = Encoding.UTF8.GetBytes(text);
            lock (error) { error.Write(b, 0, b.Length); error.Flush(); }
        };
        static readonly Stream error = Console.OpenStandardError();

        // Runs a script whose output nobody wants, and returns its errors.
        public static string Try(Engine on, string user, string script)
        {
            var errors = new StringBuilder();
            int exit = on.Run(0, user, script, false, (stream, text) => { if (stream == "stderr") errors.Append(text); });
            return exit != 0 && errors.Length == 0 ? "exit code " + exit : errors.ToString();
        }

        // Starts reading; requests that come before there is an engine wait.
        static readonly ManualResetEventSlim able = new ManualResetEventSlim();
        static Thread reader;

        public static void Listen()
        {
            reader = new Thread(() => Channel.Read(new StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false)), Start, id => engine?.Cancel(id)));
            reader.IsBackground = true;
            reader.Start();
        }

        // Serves until the agent closes standard input.
        public static void Serve(Engine with, string root, Hashtable open)
        {
            engine = with;
            c = root;
            sessions = open;
            able.Set();
            Channel.Send(new Dictionary<string, object> { ["ready"] = true });
            reader.Join();
        }

        static void Start(Request r)
        {
            var thread = new Thread(() =>
            {
                able.Wait();
                int exit = 1;
                Action<string, string> sink = (stream, text) => Channel.Send(new Dictionary<string, object> { ["id"] = r.Id, ["stream"] = stream, ["data"] = text });
                Count(r.User, 1);
                try { exit = Run(r, sink); }
                catch (Exception e) { sink("stderr", "stand-in: " + e.Message + "\r\n"); }
                finally { Count(r.User, -1); }
                Channel.Send(new Dictionary<string, object> { ["id"] = r.Id, ["exit"] = exit });
            });
            thread.IsBackground = true;
            thread.Start();
        }

        // How many sessions a user has: a profile in use can't be removed.
        static void Count(string user, int by)
        {
            lock (sessions.SyncRoot) sessions[user] = (sessions[user] is int n ? n : 0) + by;
        }

        static string Quote(string s) { return "'" + (s ?? "").Replace("'", "''") + "'"; }

        static int Run(Request r, Action<string, string> sink)
        {
            string words = string.Join(", ", r.Args.Select(Quote));
            switch (r.Kind)
            {
                case "command":
                    const string read = "# wbox: read ";
                    if (r.Text.StartsWith(read, StringComparison.Ordinal)) return Read(r.Text.Substring(read.Length).Split('\n')[0].Trim(), sink);
                    return engine.Run(r.Id, r.User, r.Text, true, sink);
                case "file":
                    return engine.Run(r.Id, r.User, "Invoke-Expression (Get-StandinFileCall " + Quote(r.Text) + " @(" + words + "))", false, sink);
                case "program":
                    return engine.Run(r.Id, r.User, "$a = Invoke-StandinProgram " + Quote(r.Program) + " @(" + words + "); if ($null -eq $a) { exit 9009 }; [Console]::Out.Write($a.Stdout); [Console]::Error.Write($a.Stderr); exit $a.Exit", false, sink);
                case "boot":
                    return engine.Run(r.Id, "SYSTEM", "Start-StandinBoot", false, sink);
                default:
                    sink("stderr", "stand-in: unknown kind of request " + r.Kind + "\r\n");
                    return 1;
            }
        }

        // The bootstrap that reads a log writes bytes past PowerShell, which
        // would land in the protocol: it is answered here. The last MiB will do.
        static int Read(string path, Action<string, string> sink)
        {
            string rest = path.Replace('\\', '/');
            if (rest.Length < 3 || !rest.StartsWith("C:/", StringComparison.OrdinalIgnoreCase)) return 0;
            string full = Path.GetFullPath(Path.Combine(c, rest.Substring(3)));
            if (!full.StartsWith(c + "/", StringComparison.Ordinal) || !File.Exists(full)) return 0;
            using (var file = new FileStream(full, FileMode.Open, FileAccess.Read, FileShare.ReadWrite | FileShare.Delete))
            {
                const int limit = 1 << 20;
                if (file.Length > limit) file.Seek(file.Length - limit, SeekOrigin.Begin);
                using (var text = new StreamReader(file, Encoding.UTF8)) sink("stdout", text.ReadToEnd());
            }
            return 0;
        }
    }
}
