// What the played Windows remembers on the side of PowerShell: sections of
// JSON files, and the registry.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text.Json;
using System.Text.Json.Nodes;

namespace Standin
{
    public sealed class Value
    {
        public string Kind; // String, ExpandString, MultiString, DWord, QWord or Binary
        public object Data;
    }

    public sealed class Key
    {
        public string Name;
        public readonly SortedDictionary<string, Key> Keys = new SortedDictionary<string, Key>(StringComparer.OrdinalIgnoreCase);
        public readonly SortedDictionary<string, Value> Values = new SortedDictionary<string, Value>(StringComparer.OrdinalIgnoreCase);
        public Key(string name) { Name = name; }
    }

    // The registry, kept in one file that is replaced at each change.
    public static class Registry
    {
        static readonly object gate = new object();
        static Key root = new Key("");
        static string path;
        public static readonly string[] Hives = { "HKEY_LOCAL_MACHINE", "HKEY_CURRENT_USER" };

        // Loads the file; false where there is none yet.
        public static bool Open(string file)
        {
            lock (gate)
            {
                path = file;
                root = new Key("");
                foreach (string hive in Hives) root.Keys[hive] = new Key(hive);
                if (!File.Exists(file)) return false;
                Load(root, JsonNode.Parse(File.ReadAllText(file)).AsObject());
                return true;
            }
        }

        static void Load(Key key, JsonObject node)
        {
            if (node["values"] is JsonObject values)
                foreach (var v in values)
                {
                    string kind = (string)v.Value["kind"];
                    key.Values[v.Key] = new Value { Kind = kind, Data = Read(kind, v.Value["data"]) };
                }
            if (node["keys"] is JsonObject keys)
                foreach (var k in keys)
                {
                    if (!key.Keys.TryGetValue(k.Key, out Key child)) key.Keys[k.Key] = child = new Key(k.Key);
                    Load(child, k.Value.AsObject());
                }
        }

        static object Read(string kind, JsonNode data)
        {
            switch (kind)
            {
                case "DWord": return (int)data;
                case "QWord": return (long)data;
                case "MultiString": return data.AsArray().Select(n => (string)n).ToArray();
                case "Binary": return Convert.FromBase64String((string)data);
                default: return (string)data;
            }
        }

        static JsonObject Dump(Key key)
        {
            var values = new JsonObject();
            foreach (var v in key.Values)
                values[v.Key] = new JsonObject { ["kind"] = v.Value.Kind, ["data"] = v.Value.Data is byte[] b ? JsonValue.Create(Convert.ToBase64String(b)) : JsonSerializer.SerializeToNode(v.Value.Data) };
            var keys = new JsonObject();
            foreach (var k in key.Keys) keys[k.Key] = Dump(k.Value);
            var node = new JsonObject();
            if (values.Count > 0) node["values"] = values;
            if (keys.Count > 0) node["keys"] = keys;
            return node;
        }

        static void Save()
        {
            File.WriteAllText(path + ".new", Dump(root).ToJsonString());
            File.Move(path + ".new", path, true);
        }

        static string[] Split(string where) { return where.Split(new[] { '\\', '/' }, StringSplitOptions.RemoveEmptyEntries); }

        static Key Find(string where)
        {
            Key key = root;
            foreach (string part in Split(where))
                if (!key.Keys.TryGetValue(part, out key)) return null;
            return key;
        }

        public static Key Get(string where) { lock (gate) return Find(where); }

        public static Key Create(string where, bool parents)
        {
            lock (gate)
            {
                string[] parts = Split(where);
                Key key = root;
                for (int i = 0; i < parts.Length; i++)
                {
                    if (!key.Keys.TryGetValue(parts[i], out Key child))
                    {
                        if (i == 0) throw new IOException("there is no hive " + parts[i]);
                        if (i < parts.Length - 1 && !parents) throw new IOException("The registry key at the specified path does not exist.");
                        key.Keys[parts[i]] = child = new Key(parts[i]);
                    }
                    key = child;
                }
                Save();
                return key;
            }
        }

        public static void Remove(string where)
        {
            lock (gate)
            {
                string[] parts = Split(where);
                Key parent = Find(string.Join("\\", parts.Take(parts.Length - 1)));
                if (parent == null || parts.Length < 2) throw new IOException("the key " + where + " can't be removed");
                parent.Keys.Remove(parts[parts.Length - 1]);
                Save();
            }
        }

        // Sets a value, or removes it where data is null.
        public static void Set(string where, string name, string kind, object data)
        {
            lock (gate)
            {
                Key key = Find(where) ?? throw new IOException("there is no key " + where);
                if (data == null) key.Values.Remove(name);
                else key.Values[name] = new Value { Kind = kind, Data = data };
                Save();
            }
        }
    }
}
