"""What a disclosure officer does: assess, sweep, choose, release."""
