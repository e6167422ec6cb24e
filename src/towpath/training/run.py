from towpath.methods.run import fit  # noqa
