// Command wbox bakes golden Windows boxes for Kubernetes.
package main

func main() {}
