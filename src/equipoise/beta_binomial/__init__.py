"""The beta-binomial law: its prior, posterior and expectations."""
