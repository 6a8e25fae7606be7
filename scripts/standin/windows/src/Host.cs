// PowerShell as powershell.exe shows it: a host that prints to the request, and
// an engine that gives each request a fresh runspace.
using System;
using System.Collections.Concurrent;
using System.Collections.Generic;
using System.Collections.ObjectModel;
using System.Globalization;
using System.Management.Automation;
using System.Management.Automation.Host;
using System.Management.Automation.Runspaces;
using System.Security;
using System.Threading;
using System.Threading.Tasks;

namespace Standin
{
    sealed class RawUI : PSHostRawUserInterface
    {
        // So wide that no line is folded: a result line is one line.
        public override Size BufferSize { get; set; } = new Size(32000, 300);
        public override Size WindowSize { get; set; } = new Size(32000, 300);
        public override ConsoleColor BackgroundColor { get; set; } = ConsoleColor.Black;
        public override ConsoleColor ForegroundColor { get; set; } = ConsoleColor.White;
        public override Coordinates CursorPosition { get; set; }
        public override int CursorSize { get; set; } = 1;
        public override bool KeyAvailable => false;
        public override Size MaxPhysicalWindowSize => WindowSize;
        public override Size MaxWindowSize => WindowSize;
        public override Coordinates WindowPosition { get; set; }
        public override string WindowTitle { get; set; } = "Windows PowerShell";
        public override void FlushInputBuffer() { }
        public override BufferCell[,] GetBufferContents(Rectangle r) { throw new NotSupportedException(); }
        public override KeyInfo ReadKey(ReadKeyOptions o) { throw new PSInvalidOperationException("Windows PowerShell is in NonInteractive mode."); }
        public override void ScrollBufferContents(Rectangle s, Coordinates d, Rectangle c, BufferCell f) { }
        public override void SetBufferContents(Coordinates o, BufferCell[,] c) { }
        public override void SetBufferContents(Rectangle r, BufferCell f) { }
    }

    sealed class UI : PSHostUserInterface
    {
        const string NewLine = "\r\n";
        readonly RawUI raw = new RawUI();
        static Exception Interactive() { return new PSInvalidOperationException("Windows PowerShell is in NonInteractive mode. Read and Prompt functionality is not available."); }
        public override PSHostRawUserInterface RawUI => raw;
        public override void Write(string s) { Sink.Write("stdout", s); }
        public override void Write(ConsoleColor f, ConsoleColor b, string s) { Sink.Write("stdout", s); }
        public override void WriteLine() { Sink.Write("stdout", NewLine); }
        public override void WriteLine(string s) { Sink.Write("stdout", s + NewLine); }
        public override void WriteLine(ConsoleColor f, ConsoleColor b, string s) { Sink.Write("stdout", s + NewLine); }
        public override void WriteErrorLine(string s) { Sink.Write("stderr", s + NewLine); }
        public override void WriteDebugLine(string s) { Sink.Write("stdout", "DEBUG: " + s + NewLine); }
        public override void WriteVerboseLine(string s) { Sink.Write("stdout", "VERBOSE: " + s + NewLine); }
        public override void WriteWarningLine(string s) { Sink.Write("stdout", "WARNING: " + s + NewLine); }
        public override void WriteProgress(long id, ProgressRecord r) { }
        public override string ReadLine() { throw Interactive(); }
        public override SecureString ReadLineAsSecureString() { throw Interactive(); }
        public override Dictionary<string, PSObject> Prompt(string c, string m, Collection<FieldDescription> d) { throw Interactive(); }
        public override int PromptForChoice(string c, string m, Collection<ChoiceDescription> o, int d) { throw Interactive(); }
        public override PSCredential PromptForCredential(string c, string m, string u, string t) { throw Interactive(); }
        public override PSCredential PromptForCredential(string c, string m, string u, string t, PSCredentialTypes a, PSCredentialUIOptions o) { throw Interactive(); }
    }

    public sealed class Host : PSHost
    {
        readonly UI ui = new UI();
        public int? ExitCode;
        public override Guid InstanceId { get; } = Guid.NewGuid();
        public override string Name => "ConsoleHost";
        public override Version Version => new Version(5, 1);
        public override CultureInfo CurrentCulture => CultureInfo.InvariantCulture;
        public override CultureInfo CurrentUICulture => CultureInfo.InvariantCulture;
        public override PSHostUserInterface UI => ui;
        public override void EnterNestedPrompt() { throw new NotSupportedException(); }
        public override void ExitNestedPrompt() { throw new NotSupportedException(); }
        public override void NotifyBeginApplication() { }
        public override void NotifyEndApplication() { }
        public override void SetShouldExit(int code) { ExitCode = code; }
    }

    // Runs scripts, each in a runspace that nothing has run in before.
    public sealed class Engine
    {
        sealed class Fresh { public Runspace Space; public Host Host; }

        readonly InitialSessionState state;
        readonly string prepare; // run first in each runspace
        readonly ConcurrentDictionary<long, PowerShell> running = new ConcurrentDictionary<long, PowerShell>();
        Task<Fresh> spare;

        public Engine(InitialSessionState state, string prepare)
        {
            this.state = state;
            this.prepare = prepare;
            Renew();
        }

        // Makes the next runspace ready while nobody waits for it.
        void Renew() { spare = Task.Run(() => Make()); }

        Fresh Make()
        {
            var host = new Host();
            Runspace space = RunspaceFactory.CreateRunspace(host, state);
            space.ThreadOptions = PSThreadOptions.UseCurrentThread;
            space.Open();
            return new Fresh { Space = space, Host = host };
        }

        public void Cancel(long id)
        {
            if (running.TryGetValue(id, out PowerShell shell)) shell.BeginStop(null, null);
        }

        // Runs a script as a user and returns its exit code, as powershell.exe
        // would: that of exit, 1 after an error that ended it.
        public int Run(long id, string user, string script, bool command, Action<string, string> sink)
        {
            Fresh fresh = Interlocked.Exchange(ref spare, null)?.GetAwaiter().GetResult() ?? Make();
            Renew();
            Action<string, string> before = Sink.Current;
            Sink.Current = sink;
            try
            {
                using (PowerShell shell = PowerShell.Create())
                {
                    shell.Runspace = fresh.Space;
                    running[id] = shell;
                    fresh.Space.SessionStateProxy.SetVariable("StandinUser", user);
                    shell.AddScript(prepare).Invoke();
                    shell.Commands.Clear();
                    shell.Streams.ClearStreams();
                    fresh.Host.ExitCode = null;
                    // Whether the last statement went well is lost at the end of the script.
                    const string ok = "StandinOk";
                    shell.AddScript(command ? script + "\n$global:" + ok + " = $?" : script);
                    // Errors as text on standard error, the rest on standard output.
                    shell.Commands.Commands[0].MergeMyResults(PipelineResultTypes.Error, PipelineResultTypes.Output);
                    shell.AddCommand("Out-Default");
                    try { shell.Invoke(); }
                    catch (RuntimeException e)
                    {
                        if (fresh.Host.ExitCode is int early) return early;
                        ErrorRecord record = e.ErrorRecord;
                        sink("stderr", record == null ? e.Message + "\r\n" : record + "\r\n" + record.InvocationInfo?.PositionMessage + "\r\n    + FullyQualifiedErrorId : " + record.FullyQualifiedErrorId + "\r\n");
                        return 1;
                    }
                    if (fresh.Host.ExitCode is int code) return code;
                    return command && !Equals(fresh.Space.SessionStateProxy.GetVariable(ok), true) ? 1 : 0;
                }
            }
            finally
            {
                running.TryRemove(id, out _);
                Sink.Current = before;
                fresh.Space.Dispose();
            }
        }

        // Runs a script beside everything else, as a scheduled task does.
        public void Background(string user, string script, Action<string, string> sink)
        {
            var thread = new Thread(() => { try { Run(-1, user, script, false, sink); } catch (Exception e) { sink("stderr", e.Message + "\r\n"); } });
            thread.IsBackground = true;
            thread.Start();
        }
    }
}
