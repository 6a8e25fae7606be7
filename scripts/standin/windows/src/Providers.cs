// The drives HKLM:, HKCU: and Cert: with the cmdlets that PowerShell has itself.
using System;
using System.Collections.Generic;
using System.Collections.ObjectModel;
using System.IO;
using System.Linq;
using System.Management.Automation;
using System.Management.Automation.Provider;
using System.Security;
using System.Text.Json;

namespace Standin
{
    // What Get-Item returns for a key; the members that scripts use of
    // Microsoft.Win32.RegistryKey.
    public sealed class RegistryItem
    {
        readonly Key key;
        public string Name { get; }
        internal RegistryItem(Key key, string name) { this.key = key; Name = name; }
        public int SubKeyCount => key.Keys.Count;
        public int ValueCount => key.Values.Count;
        public string[] Property => key.Values.Keys.ToArray();
        public string[] GetValueNames() { return key.Values.Keys.ToArray(); }
        public string[] GetSubKeyNames() { return key.Keys.Values.Select(k => k.Name).ToArray(); }
        public object GetValue(string name) { return GetValue(name, null, ""); }
        public object GetValue(string name, object other) { return GetValue(name, other, ""); }
        public object GetValue(string name, object other, string options)
        {
            return key.Values.TryGetValue(name ?? "", out Value v) ? RegistryProvider.Shown(v, options == "DoNotExpandEnvironmentNames") : other;
        }
        public override string ToString() { return Name; }
    }

    public sealed class RegistryTypeParameter
    {
        [Parameter(ValueFromPipelineByPropertyName = true)]
        public string Type { get; set; }
    }

    [CmdletProvider("Registry", ProviderCapabilities.ShouldProcess)]
    public sealed class RegistryProvider : NavigationCmdletProvider, IPropertyCmdletProvider, IDynamicPropertyCmdletProvider
    {
        static readonly string[] Kinds = { "String", "ExpandString", "Binary", "DWord", "MultiString", "QWord" };
        public override char ItemSeparator => '\\';
        public override char AltItemSeparator => '/';

        protected override Collection<PSDriveInfo> InitializeDefaultDrives()
        {
            return new Collection<PSDriveInfo> {
                new PSDriveInfo("HKLM", ProviderInfo, "HKEY_LOCAL_MACHINE", "", null),
                new PSDriveInfo("HKCU", ProviderInfo, "HKEY_CURRENT_USER", "", null) };
        }

        // The path below the hives; access to SECURITY is SYSTEM's.
        string Full(string path)
        {
            string full = string.Join("\\", path.Split(new[] { '\\', '/' }, StringSplitOptions.RemoveEmptyEntries));
            if (full.StartsWith("HKEY_LOCAL_MACHINE\\SECURITY\\", StringComparison.OrdinalIgnoreCase) && !string.Equals(SessionState.PSVariable.GetValue("StandinUser") as string, "SYSTEM", StringComparison.OrdinalIgnoreCase))
                throw new SecurityException("Requested registry access is not allowed.");
            return full;
        }

        protected override bool IsValidPath(string path) { return true; }
        protected override bool ItemExists(string path) { return Registry.Get(Full(path)) != null; }
        protected override bool IsItemContainer(string path) { return true; }
        protected override bool HasChildItems(string path) { return Registry.Get(Full(path))?.Keys.Count > 0; }

        Key Need(string path)
        {
            Key key = Registry.Get(Full(path));
            if (key == null) WriteError(new ErrorRecord(new ItemNotFoundException("Cannot find path '" + path + "' because it does not exist."), "PathNotFound", ErrorCategory.ObjectNotFound, path));
            return key;
        }

        void WriteKey(Key key, string path) { WriteItemObject(new RegistryItem(key, Full(path)), path, true); }

        protected override void GetItem(string path) { Key key = Need(path); if (key != null) WriteKey(key, path); }

        protected override void GetChildItems(string path, bool recurse)
        {
            Key key = Need(path);
            if (key == null) return;
            foreach (Key child in key.Keys.Values.ToList())
            {
                string below = MakePath(path, child.Name);
                WriteKey(child, below);
                if (recurse) GetChildItems(below, true);
            }
        }

        protected override void GetChildNames(string path, ReturnContainers r)
        {
            Key key = Need(path);
            if (key != null) foreach (Key child in key.Keys.Values.ToList()) WriteItemObject(child.Name, MakePath(path, child.Name), true);
        }

        protected override void NewItem(string path, string type, object value)
        {
            string full = Full(path);
            if (Registry.Get(full) != null)
            {
                // As in Windows: -Force empties the key that is there.
                if (!Force) { WriteError(new ErrorRecord(new IOException("A key in this path already exists."), "KeyExists", ErrorCategory.ResourceExists, path)); return; }
                Registry.Remove(full);
            }
            WriteKey(Registry.Create(full, Force), path);
        }

        protected override void RemoveItem(string path, bool recurse) { if (Need(path) != null) Registry.Remove(Full(path)); }

        internal static object Shown(Value v, bool raw)
        {
            return v.Kind == "ExpandString" && !raw ? System.Text.RegularExpressions.Regex.Replace((string)v.Data, "%(\\w+)%", m => Environment.GetEnvironmentVariable(m.Groups[1].Value) ?? m.Value) : v.Data;
        }

        public void GetProperty(string path, Collection<string> names)
        {
            Key key = Need(path);
            if (key == null) return;
            var found = new PSObject();
            IEnumerable<string> wanted = names == null || names.Count == 0 ? key.Values.Keys.ToList() : (IEnumerable<string>)names;
            bool any = false;
            foreach (string name in wanted)
            {
                bool wild = WildcardPattern.ContainsWildcardCharacters(name);
                foreach (string have in key.Values.Keys.Where(n => wild ? new WildcardPattern(name, WildcardOptions.IgnoreCase).IsMatch(n) : string.Equals(n, name, StringComparison.OrdinalIgnoreCase)).ToList())
                {
                    found.Properties.Add(new PSNoteProperty(have, Shown(key.Values[have], false)));
                    any = true;
                }
                if (!wild && !key.Values.ContainsKey(name))
                    WriteError(new ErrorRecord(new PSArgumentException("Property " + name + " does not exist at path " + path + "."), "PropertyNotFound", ErrorCategory.InvalidArgument, path));
            }
            if (any) WritePropertyObject(found, path);
        }

        static object Convert(object value, string kind)
        {
            object plain = value is PSObject o ? o.BaseObject : value;
            switch (kind)
            {
                case "DWord": return plain is uint u ? unchecked((int)u) : (int)LanguagePrimitives.ConvertTo(plain, typeof(int));
                case "QWord": return LanguagePrimitives.ConvertTo(plain, typeof(long));
                case "MultiString": return LanguagePrimitives.ConvertTo(plain, typeof(string[]));
                case "Binary": return LanguagePrimitives.ConvertTo(plain, typeof(byte[]));
                default: return LanguagePrimitives.ConvertTo(plain, typeof(string));
            }
        }

        static string KindOf(object value, string type)
        {
            if (!string.IsNullOrEmpty(type))
                return Kinds.FirstOrDefault(k => string.Equals(k, type, StringComparison.OrdinalIgnoreCase)) ?? throw new PSArgumentException("the registry has no type " + type + ": " + string.Join(", ", Kinds));
            object plain = value is PSObject o ? o.BaseObject : value;
            return plain is int || plain is uint ? "DWord" : plain is long || plain is ulong ? "QWord" : plain is string[] ? "MultiString" : plain is byte[] ? "Binary" : "String";
        }

        public void SetProperty(string path, PSObject values)
        {
            Key key = Need(path);
            if (key == null) return;
            string type = (DynamicParameters as RegistryTypeParameter)?.Type;
            foreach (PSPropertyInfo p in values.Properties)
            {
                // A value keeps its type unless another is asked for.
                string kind = string.IsNullOrEmpty(type) && key.Values.TryGetValue(p.Name, out Value old) ? old.Kind : KindOf(p.Value, type);
                Registry.Set(Full(path), p.Name, kind, Convert(p.Value, kind));
            }
        }

        public object SetPropertyDynamicParameters(string path, PSObject values) { return new RegistryTypeParameter(); }
        public object GetPropertyDynamicParameters(string path, Collection<string> names) { return null; }
        public void ClearProperty(string path, Collection<string> names) { foreach (string n in names) Registry.Set(Full(path), n, "String", ""); }
        public object ClearPropertyDynamicParameters(string path, Collection<string> names) { return null; }

        public void NewProperty(string path, string name, string type, object value)
        {
            Key key = Need(path);
            if (key == null) return;
            if (key.Values.ContainsKey(name) && !Force) { WriteError(new ErrorRecord(new IOException("The property already exists."), "PropertyExists", ErrorCategory.ResourceExists, path)); return; }
            string kind = KindOf(value, type);
            Registry.Set(Full(path), name, kind, Convert(value ?? "", kind));
            var made = new PSObject();
            made.Properties.Add(new PSNoteProperty(name, value));
            WritePropertyObject(made, path);
        }

        public object NewPropertyDynamicParameters(string path, string name, string type, object value) { return null; }

        public void RemoveProperty(string path, string name)
        {
            Key key = Need(path);
            if (key == null) return;
            if (!key.Values.ContainsKey(name)) WriteError(new ErrorRecord(new PSArgumentException("Property " + name + " does not exist at path " + path + "."), "PropertyNotFound", ErrorCategory.InvalidArgument, path));
            else Registry.Set(Full(path), name, "", null);
        }

        public object RemovePropertyDynamicParameters(string path, string name) { return null; }
        public void RenameProperty(string path, string from, string to) { throw new PSNotSupportedException(); }
        public object RenamePropertyDynamicParameters(string path, string from, string to) { return null; }
        public void CopyProperty(string a, string b, string c, string d) { throw new PSNotSupportedException(); }
        public object CopyPropertyDynamicParameters(string a, string b, string c, string d) { return null; }
        public void MoveProperty(string a, string b, string c, string d) { throw new PSNotSupportedException(); }
        public object MovePropertyDynamicParameters(string a, string b, string c, string d) { return null; }
    }

    public sealed class CertificateItem
    {
        public string Thumbprint { get; set; }
        public bool HasPrivateKey => true;
    }

    public sealed class DeleteKeyParameter
    {
        [Parameter]
        public SwitchParameter DeleteKey { get; set; }
    }

    // Cert:\LocalMachine\My, over the agent's certificates.
    [CmdletProvider("Certificate", ProviderCapabilities.ShouldProcess)]
    public sealed class CertificateProvider : NavigationCmdletProvider
    {
        static readonly string[] Stores = { "", "LocalMachine", "LocalMachine\\My" };
        public override char ItemSeparator => '\\';
        public override char AltItemSeparator => '/';

        protected override Collection<PSDriveInfo> InitializeDefaultDrives()
        {
            return new Collection<PSDriveInfo> { new PSDriveInfo("Cert", ProviderInfo, "", "", null) };
        }

        static string Full(string path) { return string.Join("\\", path.Split(new[] { '\\', '/' }, StringSplitOptions.RemoveEmptyEntries)); }

        static string[] Thumbprints()
        {
            Answer a = Channel.Call("wbox-standin.exe", new[] { "certificates" });
            if (a.Exit != 0) throw new IOException(a.Stderr);
            return JsonSerializer.Deserialize<string[]>(a.Stdout);
        }

        // The thumbprint that a path of four parts names, or null.
        static string Certificate(string path)
        {
            string full = Full(path);
            const string store = "LocalMachine\\My\\";
            if (!full.StartsWith(store, StringComparison.OrdinalIgnoreCase)) return null;
            string name = full.Substring(store.Length);
            return Thumbprints().FirstOrDefault(t => string.Equals(t, name, StringComparison.OrdinalIgnoreCase));
        }

        static bool Store(string path) { return Stores.Contains(Full(path), StringComparer.OrdinalIgnoreCase); }
        protected override bool IsValidPath(string path) { return true; }
        protected override bool ItemExists(string path) { return Store(path) || Certificate(path) != null; }
        protected override bool IsItemContainer(string path) { return Store(path); }
        protected override bool HasChildItems(string path) { return Store(path); }

        protected override void GetItem(string path)
        {
            string thumbprint = Certificate(path);
            if (thumbprint != null) WriteItemObject(new CertificateItem { Thumbprint = thumbprint }, path, false);
        }

        protected override void GetChildItems(string path, bool recurse)
        {
            if (!string.Equals(Full(path), Stores[2], StringComparison.OrdinalIgnoreCase)) return;
            foreach (string t in Thumbprints()) WriteItemObject(new CertificateItem { Thumbprint = t }, MakePath(path, t), false);
        }

        protected override void RemoveItem(string path, bool recurse)
        {
            string thumbprint = Certificate(path);
            if (thumbprint == null) throw new ItemNotFoundException("Cannot find path '" + path + "' because it does not exist.");
            Answer a = Channel.Call("wbox-standin.exe", new[] { "certificates", "remove", thumbprint });
            if (a.Exit != 0) throw new IOException(a.Stderr);
        }

        protected override object RemoveItemDynamicParameters(string path, bool recurse) { return new DeleteKeyParameter(); }
    }
}
