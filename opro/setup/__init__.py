"""From a composed configuration to checked parts and a plan, before anything is spent."""
