# Loads a box's Vagrantfile with Vagrant's own loader, as "vagrant up" does, and prints what it sets as JSON.
require "vagrant"
require "json"

loader = Vagrant::Config::Loader.new(Vagrant::Config::VERSIONS, Vagrant::Config::VERSIONS_ORDER)
loader.set(:box, Pathname.new(ARGV.fetch(0)))
config, warnings, errors = loader.load([:box])
abort((warnings + errors).join("\n")) unless (warnings + errors).empty?

# The libvirt plugin need not be there: Vagrant then keeps the settings as they are.
provider = config.vm.get_provider_config(:libvirt)
settings = provider.instance_variables.to_h { |v| [v.to_s.delete_prefix("@"), provider.instance_variable_get(v)] }
puts JSON.generate(
  "guest" => config.vm.guest,
  "communicator" => config.vm.communicator,
  "winrm" => "#{config.winrm.username}/#{config.winrm.password}",
  "boot_timeout" => config.vm.boot_timeout,
  "provisioners" => config.vm.provisioners.map { |p| "#{p.name} #{p.type}" },
  "provider" => settings.slice(*%w[cpus memory machine_type loader nvram disk_bus nic_model_type video_type]),
)
