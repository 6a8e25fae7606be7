// Package builder is the engine behind the wbox command and the Packer plugin:
// it turns a Kubernetes version and a Windows Server ISO into golden boxes.
//
// Reading order: builder.go (Resolve, Plan, Build, Publish), pipeline.go (the
// ordered list of stages; nothing else decides order), stage (what a stage is),
// internal/engine (how stages become results), internal/bake (what a VM layer
// does), then the stages one by one.
//
// Words: a stage makes outputs from named inputs; its key decides whether a
// result in the store may be used (a hit). A layer is a stage that runs a
// virtual machine on a copy-on-write overlay of its parent's disk. The seed is
// the CD on which scripts and payload reach the guest. The payload is the .exe
// files of Kubernetes, which go onto the box's WBOX partition without a boot.
// The proof boots an overlay of the finished disk. A stand-in is a small Linux
// guest that plays Windows where there are no media.
//
// Dependencies point downwards only; deps_test.go has the rule and holds it.
package builder
